// SPDX-License-Identifier: Apache-2.0
// SampleReader with an index of rows: the same pixels as without, from known rows in later epochs, and right pixels
// where a file has changed or an index is wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <random>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/decode/jpeg_encode.h"
#include "stoker/data/load/sample_reader.h"
#include "support/images.h"
#include "support/tar_builder.h"
#include "support/temp_folder.h"

namespace stoker::data {
namespace {

using testing::computed_image;
using testing::TempFolder;
using Pixels = std::vector<std::uint8_t>;

constexpr int kImages = 12;
constexpr std::size_t kFileBytes = 120'000;
const augment::ImagePolicy kPolicy{
    .crop = augment::Crop::kRandomResized, .out_width = 40, .out_height = 40, .flip = true};

// A JPEG with comments, after its first segment, that make its size the same for all images.
std::string make_jpeg(int number) {
  const augment::Image image = computed_image(230 + number, 260 - 3 * number, number % 4 == 3 ? 1 : 3, number * 37);
  const std::vector<std::byte> bytes = encode_jpeg(image.view(), 90);
  std::string text(as_text(bytes));
  while (text.size() < kFileBytes) {
    const std::size_t left = kFileBytes - text.size();
    const std::size_t size = left > 60'000 ? 30'000 : std::min<std::size_t>(left, 60'000);  // with marker
    const std::string length = {static_cast<char>((size - 2) >> 8), static_cast<char>(size - 2)};
    text.insert(20, "\xFF\xFE" + length + std::string(size - 4, 'c'));
  }
  return text;
}

const std::string& jpeg(int number) {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> made;
    for (int i = 0; i < 2 * kImages; ++i) {
      made.push_back(make_jpeg(i));
    }
    return made;
  }();
  return all.at(static_cast<std::size_t>(number));
}

std::string file_name(int number) { return fmt::format("{}/{:02}.jpg", number % 2 == 0 ? "a" : "b", number); }

class SampleReaderRows : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < kImages; ++i) {
      ASSERT_EQ(jpeg(i).size(), kFileBytes);
      data_.write(file_name(i), jpeg(i));
    }
    source_ = open_image_folder(data_.path(), {.val = 0}).train.source;
    JpegRows rows;
    (void)whole(jpeg(0), &rows);
    if (rows.empty()) {
      GTEST_SKIP() << "this processor has no decoder that finds rows";
    }
  }
  // All pixels of a JPEG.
  static Pixels whole(const std::string& file, JpegRows* rows) {
    ImageDecoder decoder;
    const ImageDecoder::Size size = decoder.open(as_bytes(file), 3, {}, "x.jpg");
    const augment::ImageView view = decoder.decode({0, 0, size.width, size.height}, "x.jpg", 1, rows);
    Pixels pixels;
    for (int y = 0; y < view.height; ++y) {
      pixels.insert(pixels.end(), view.row(y), view.row(y) + std::ptrdiff_t{view.width} * view.channels);
    }
    return pixels;
  }
  // A JPEG that differs in one bit of its first row of blocks, which moves no later row but changes its predictors.
  // Empty if there is no such bit.
  static std::string one_bit_brighter(const std::string& file) {
    JpegRows before, after;
    (void)whole(file, &before);
    const std::size_t scan = file.find("\xFF\xDA") + 14;
    const auto is_another = [](const JpegRow& a, const JpegRow& b) { return a.bit != b.bit || a.dc == b.dc; };
    for (std::size_t bit = 0; bit < before.at(1).bit; ++bit) {
      std::string changed = file;
      changed[scan + bit / 8] = static_cast<char>(changed[scan + bit / 8] ^ (1 << bit % 8));
      after.clear();
      try {
        (void)whole(changed, &after);
      } catch (const DataError&) {
        continue;
      }
      if (after.size() == before.size() &&
          std::equal(after.begin() + 1, after.end(), before.begin() + 1, std::not_fn(is_another))) {
        return changed;
      }
    }
    return {};
  }
  [[nodiscard]] static std::shared_ptr<RowIndex> new_index(const std::shared_ptr<const ByteSource>& source,
                                                           const std::filesystem::path& cache = {}) {
    return std::make_shared<RowIndex>(*source, RowIndexOptions{.cache = cache, .from_samples = 1});
  }
  [[nodiscard]] static Pixels epoch(const std::shared_ptr<const ByteSource>& source, std::int64_t number,
                                    SampleReaderOptions options) {
    const SampleReader reader(source, 3, kPolicy, std::move(options));
    const auto bytes = static_cast<std::size_t>(reader.row_bytes());
    Pixels pixels(bytes * kImages);
    SampleWorkspace workspace;
    for (std::int64_t i = 0; i < kImages; ++i) {
      reader.read_row(i, 5, number, std::span(pixels).subspan(static_cast<std::size_t>(i) * bytes, bytes), workspace);
    }
    return pixels;
  }
  // The index of an image in the source.
  [[nodiscard]] std::int64_t index_of(int number) const {
    std::int64_t index = 0;
    while (source_->key(index) != file_name(number)) {
      ++index;
    }
    return index;
  }
  // Of each image: the number of known rows.
  [[nodiscard]] static std::vector<std::size_t> known(const RowIndex& index) {
    std::vector<std::size_t> counts;
    JpegRows rows;
    for (int i = 0; i < kImages; ++i) {
      index.find(content_key(as_bytes(jpeg(i))), rows);
      counts.push_back(rows.size());
    }
    return counts;
  }

  TempFolder data_, cache_;
  std::shared_ptr<const ByteSource> source_;
};

TEST_F(SampleReaderRows, EpochsHaveTheSamePixelsWithAndWithout) {
  std::vector<std::size_t> before(kImages);
  for (const bool anew : {false, true}) {
    const auto index = new_index(source_, cache_.path());
    const std::vector<std::size_t> at_first = known(*index);
    for (std::int64_t number = 0; number < 4; ++number) {
      ASSERT_EQ(epoch(source_, number, {.rows = index}), epoch(source_, number, {})) << number << anew;
      const std::vector<std::size_t> now = known(*index);
      EXPECT_TRUE(std::ranges::equal(before, now, std::less_equal())) << number;
      EXPECT_EQ(at_first == now, anew) << "later epochs reach further down; the next run begins with all that";
      before = now;
    }
  }
  EXPECT_EQ(std::ranges::count(before, 0U), 0);
}

// A file that is damaged in its middle: crops above are good, others are not, whether its rows are known or not.
TEST_F(SampleReaderRows, ADamagedImageHasTheSameErrors) {
  std::string file = jpeg(1);
  file.replace(file.size() - 9'000, 2, "\xFF\xD9");  // the end of an image
  data_.write(file_name(1), file);
  const std::int64_t number = index_of(1);
  const auto index = new_index(source_);
  const SampleReader with(source_, 3, kPolicy, {.rows = index}), without(source_, 3, kPolicy);
  const auto read = [&](const SampleReader& reader, std::int64_t epoch) {
    Pixels row(static_cast<std::size_t>(reader.row_bytes()));
    SampleWorkspace workspace;
    try {
      reader.read_row(number, 5, epoch, row, workspace);
    } catch (const DataError& error) {
      return std::pair<std::string, Pixels>(error.what(), {});
    }
    return std::pair<std::string, Pixels>({}, row);
  };
  int bad = 0;
  for (std::int64_t epoch = 0; epoch < 60; ++epoch) {
    const auto [error, pixels] = read(without, epoch);
    ASSERT_EQ(read(with, epoch), std::make_pair(error, pixels)) << epoch;
    bad += error.empty() ? 0 : 1;
  }
  EXPECT_GT(bad, 5);
  EXPECT_LT(bad, 55);
  JpegRows rows;
  index->find(content_key(as_bytes(file)), rows);
  EXPECT_GT(rows.size(), 3U);
}

TEST_F(SampleReaderRows, TheRowsAreThoseOfAWholeImage) {
  const auto index = new_index(source_);
  (void)epoch(source_, 0, {.rows = index});
  JpegRows rows, all;
  for (int i = 0; i < kImages; ++i) {
    index->find(content_key(as_bytes(jpeg(i))), rows);
    all.clear();
    (void)whole(jpeg(i), &all);
    ASSERT_FALSE(rows.empty()) << i;
    ASSERT_LE(rows.size(), all.size()) << i;
    EXPECT_TRUE(std::equal(rows.begin(), rows.end(), all.begin())) << i;
  }
}

// Members of a tar file with the contents of the files: their rows are known already.
TEST_F(SampleReaderRows, ATarFileWithTheSameImagesKnowsTheirRows) {
  const auto index = new_index(source_);
  for (const std::int64_t number : {0, 1}) {
    (void)epoch(source_, number, {.rows = index});
  }
  const std::int64_t held = index->held_bytes();
  testing::TarBuilder tar;
  for (int i = 0; i < kImages; ++i) {
    tar.add("train/" + file_name(i), jpeg(i));
  }
  cache_.write("x.tar", tar.done());
  const auto members = open_image_folder(cache_ / "x.tar", {.val = 0}).train.source;
  for (const std::int64_t number : {0, 1}) {
    EXPECT_EQ(epoch(members, number, {.rows = index}), epoch(source_, number, {}));
  }
  EXPECT_EQ(index->held_bytes(), held);
}

// Rows with other predictors than the image has: crops below the first row become brighter, so they were used.
TEST_F(SampleReaderRows, KnownRowsAreUsed) {
  const auto right = epoch(source_, 0, {});
  const auto index = new_index(source_);
  JpegRows rows;
  for (int i = 0; i < kImages; ++i) {
    rows.clear();
    (void)whole(jpeg(i), &rows);
    std::for_each(rows.begin() + 1, rows.end(),
                  [](JpegRow& row) { row.dc[0] = static_cast<std::int16_t>(row.dc[0] + 9); });
    index->learn(content_key(as_bytes(jpeg(i))), rows);
  }
  const auto wrong = epoch(source_, 0, {.rows = index});
  std::size_t other = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    other += right[i] != wrong[i] ? 1 : 0;
  }
  EXPECT_GT(other, right.size() / 3);
}

// While the run goes on, one bit of each file changes, and its time and size stay: its rows begin where they did, but
// with another brightness. Such files are decoded without any error, whatever rows are used.
TEST_F(SampleReaderRows, AChangedFileIsNotDecodedWithOldRows) {
  const auto index = new_index(source_);
  for (const std::int64_t number : {0, 1, 2}) {
    (void)epoch(source_, number, {.rows = index});
  }
  for (int i = 0; i < kImages; ++i) {
    const std::string changed = one_bit_brighter(jpeg(i));
    ASSERT_FALSE(changed.empty()) << i;
    const auto time = std::filesystem::last_write_time(data_ / file_name(i));
    std::fstream(data_ / file_name(i), std::ios::in | std::ios::out | std::ios::binary) << changed;
    std::filesystem::last_write_time(data_ / file_name(i), time);
  }
  for (const std::int64_t number : {0, 1, 2}) {
    EXPECT_EQ(epoch(source_, number, {.rows = index}), epoch(source_, number, {}));
  }
}

TEST_F(SampleReaderRows, WholeImagesLeaveTheIndexAlone) {
  const auto index = new_index(source_);
  const auto store = std::make_shared<PixelStore>(kImages, std::int64_t{1} << 30);
  (void)epoch(source_, 0, {.store = store, .rows = index});
  EXPECT_EQ(index->held_bytes(), 0);
}

// Any rows: right ones with a few other values, and nonsense. A good image stays good, whatever its pixels are then.
TEST_F(SampleReaderRows, WrongRowsMakeNoImageBad) {
  std::mt19937_64 random(17);
  std::vector<JpegRows> right(kImages);
  for (int number = 0; number < kImages; ++number) {
    (void)whole(jpeg(number), &right[static_cast<std::size_t>(number)]);
  }
  for (int i = 0; i < 60; ++i) {
    const auto index = new_index(source_);
    for (int number = 0; number < kImages; ++number) {
      JpegRows rows = right[static_cast<std::size_t>(number)];
      for (JpegRow& row : rows) {
        if (random() % (i % 2 == 0 ? 1 : 10) == 0) {
          row.bit = static_cast<std::uint32_t>(random() >> (random() % 64));
          std::ranges::generate(row.dc, [&] { return static_cast<std::int16_t>(random()); });
        }
      }
      rows.resize(rows.size() + random() % 4, JpegRow{static_cast<std::uint32_t>(random()), {}});
      index->learn(content_key(as_bytes(jpeg(number))), rows);
    }
    ASSERT_NO_THROW((void)epoch(source_, i, {.rows = index}));
  }
}

}  // namespace
}  // namespace stoker::data
