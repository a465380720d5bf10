// SPDX-License-Identifier: Apache-2.0
// Rows are the same for 0, 1, 2 and 4 threads. The error of a bad sample names it.
#include "stoker/data/load/sample_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/data/load/row_pool.h"
#include "support/images.h"
#include "support/progressive.h"
#include "support/temp_folder.h"

namespace stoker::data {
namespace {

using testing::small_png;
using testing::TempFolder;

constexpr std::int64_t kSamples = 40;

ImageFolder write_images(const TempFolder& folder) {
  for (int i = 0; i < kSamples; ++i) {
    folder.write((i % 2 == 0 ? "a/" : "b/") + std::to_string(i) + ".png", small_png(i, 20 + i % 5, 18 + i % 3));
  }
  return open_image_folder(folder.path(), {.val = 0});
}

const augment::ImagePolicy kPolicy{
    .crop = augment::Crop::kRandomResized, .out_width = 12, .out_height = 10, .flip = true};

std::vector<std::uint8_t> all_rows(const ImageFolder& folder, int threads, std::int64_t epoch) {
  const SampleReader reader(folder.train.source, 3, kPolicy);
  const auto bytes = static_cast<std::size_t>(reader.row_bytes());
  std::vector<std::uint8_t> rows(bytes * kSamples);
  std::vector<SampleWorkspace> workspaces(static_cast<std::size_t>(std::max(threads, 1)));
  RowPool pool(threads, [&](std::int64_t, std::int64_t row, int worker) {
    reader.read_row(row, 11, epoch, {rows.data() + static_cast<std::size_t>(row) * bytes, bytes},
                    workspaces[static_cast<std::size_t>(worker)]);
  });
  pool.submit(0, kSamples);
  pool.take();
  return rows;
}

TEST(SampleReader, RowsDoNotDependOnThreads) {
  const TempFolder folder;
  const ImageFolder found = write_images(folder);
  const std::vector<std::uint8_t> rows = all_rows(found, 0, 1);
  for (const int threads : {1, 2, 4}) {
    EXPECT_EQ(all_rows(found, threads, 1), rows) << threads;
  }
  EXPECT_NE(all_rows(found, 2, 2), rows);  // another epoch has other random draws
}

TEST(SampleReader, NamesABadSample) {
  const TempFolder folder;
  write_images(folder);
  folder.write("a/0.png", "no image at all");
  folder.write("a/10.png", "");
  const ImageFolder found = open_image_folder(folder.path(), {.val = 0});
  const SampleReader reader(found.train.source, 3, kPolicy);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(reader.row_bytes()));
  SampleWorkspace workspace;
  const auto error_of = [&](std::int64_t index) -> std::string {
    try {
      reader.read_row(index, 0, 0, row, workspace);
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(error_of(0), ::testing::HasSubstr("a/0.png: is not an image"));
  EXPECT_THAT(error_of(1), ::testing::HasSubstr("a/10.png: is empty"));
  EXPECT_EQ(error_of(2), "");
  EXPECT_THAT(error_of(kSamples), ::testing::HasSubstr("out of range; the source has 40 samples"));
}

// JPEGs that are not baseline are decoded at a half, a quarter or an eighth of their size, as far as the crop allows.
// The pixels are nearly those of the full size, and they do not depend on what the workspace decoded before.
TEST(SampleReader, ShrunkImagesGiveNearlyTheSameRows) {
  const TempFolder folder;
  const std::vector<std::string> names = {"smooth.jpg", "smooth_turned_3.jpg", "smooth_turned_6.jpg", "exif_6.webp"};
  for (const std::string& name : names) {
    std::vector<std::byte> bytes;
    read_file(testing::source_folder() / "tests/data/formats" / name, bytes);
    const bool is_jpeg = image_format(bytes) == "JPEG";
    const std::string content = is_jpeg ? testing::as_progressive(as_text(bytes)) : std::string(as_text(bytes));
    folder.write("a/" + name, content);
    folder.write("b/" + name, content);
  }
  const ImageFolder found = open_image_folder(folder.path(), {.val = 0});
  augment::ImagePolicy policy = kPolicy;
  policy.min_scale = 0.3;
  const SampleReader exact(found.train.source, 3, policy);
  policy.shrink = true;
  const SampleReader fast(found.train.source, 3, policy);
  std::vector<std::uint8_t> a(static_cast<std::size_t>(exact.row_bytes())), b = a;
  SampleWorkspace workspace;
  std::vector<std::vector<std::uint8_t>> rows;
  int other = 0;
  for (std::int64_t i = 0; i < 80; ++i) {
    exact.read_row(i % 8, 3, i / 8, a, workspace);
    fast.read_row(i % 8, 3, i / 8, b, workspace);
    other += a != b;
    int worst = 0;
    for (std::size_t k = 0; k < a.size(); ++k) {
      worst = std::max(worst, std::abs(a[k] - b[k]));
    }
    EXPECT_LE(worst, 6) << found.train.source->name(i % 8) << ", epoch " << i / 8;
    rows.push_back(b);
  }
  EXPECT_GE(other, 50);
  SampleWorkspace fresh;
  for (std::int64_t i = 79; i >= 0; --i) {
    fast.read_row(i % 8, 3, i / 8, b, fresh);
    ASSERT_EQ(b, rows[static_cast<std::size_t>(i)]) << i;
  }
}

// Our decoder at full size is faster than libjpeg-turbo at a half, and pixels may not depend on the processor.
TEST(SampleReader, BaselineImagesAreNotShrunk) {
  const TempFolder folder;
  for (const std::string name : {"smooth.jpg", "smooth_turned_6.jpg"}) {
    std::vector<std::byte> bytes;
    read_file(testing::source_folder() / "tests/data/formats" / name, bytes);
    folder.write("a/" + name, as_text(bytes));
    folder.write("b/" + name, as_text(bytes));
  }
  const ImageFolder found = open_image_folder(folder.path(), {.val = 0});
  augment::ImagePolicy policy = kPolicy;
  const SampleReader exact(found.train.source, 3, policy);
  policy.shrink = true;
  const SampleReader fast(found.train.source, 3, policy);
  std::vector<std::uint8_t> a(static_cast<std::size_t>(exact.row_bytes())), b = a;
  SampleWorkspace workspace;
  for (std::int64_t i = 0; i < 40; ++i) {
    exact.read_row(i % 4, 3, i / 4, a, workspace);
    fast.read_row(i % 4, 3, i / 4, b, workspace);
    ASSERT_EQ(a, b) << i;
  }
}

// The same image for every sample. Reading it takes 3 ms of sleep or of computing.
class LateImage final : public ByteSource {
 public:
  explicit LateImage(bool sleeps) : sleeps_(sleeps) {}
  [[nodiscard]] std::int64_t size() const override { return 16; }
  void read(std::int64_t, std::vector<std::byte>& bytes) const override {
    constexpr double kSeconds = 3e-3;
    if (sleeps_) {
      std::this_thread::sleep_for(std::chrono::duration<double>(kSeconds));
    } else {
      for (const double end = thread_cpu_s() + kSeconds; thread_cpu_s() < end;) {
      }
    }
    const auto image = std::as_bytes(std::span(png_));
    bytes.assign(image.begin(), image.end());
  }
  [[nodiscard]] std::string_view key(std::int64_t) const override { return "a/1.png"; }
  [[nodiscard]] std::string name(std::int64_t) const override { return "a/1.png"; }

 private:
  bool sleeps_;
  std::string png_ = small_png(1, 20, 18);
};

TEST(SampleReader, EstimatesWhatASampleWaitsForTheDisk) {
  const auto estimate = [](bool sleeps) {
    const ImageSplit split{"train", std::make_shared<LateImage>(sleeps), SampleList::first(16), LabelList()};
    return estimate_load_time(split, 3, kPolicy, 16);
  };
  const core::LoadTime disk = estimate(true), work = estimate(false);
  EXPECT_GE(disk.seconds, 3e-3);  // a sleep is never shorter
  EXPECT_LE(disk.asleep, disk.seconds);
  EXPECT_GE(work.seconds, 3e-3);
  EXPECT_GT(disk.asleep, work.asleep);
}

TEST(SampleReader, EstimatesAndRefuses) {
  const TempFolder folder;
  const ImageFolder found = write_images(folder);
  EXPECT_GT(estimate_load_time(found.train, 3, kPolicy, 1000).seconds, 0);
  EXPECT_EQ(estimate_load_time(found.val, 3, kPolicy).seconds, 0);
  EXPECT_THROW(SampleReader(found.train.source, 2, kPolicy), ConfigError);
  EXPECT_THROW(SampleReader(nullptr, 3, kPolicy), ConfigError);
}

}  // namespace
}  // namespace stoker::data
