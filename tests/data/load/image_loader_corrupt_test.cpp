// SPDX-License-Identifier: Apache-2.0
// A folder of a thousand images, nine of which become bad, each in another way. The batches are the same for every
// number of threads, exactly the bad images are named, and the good images are the same as without the damage. Uses
// ImageNet's images if STOKER_DATA has them, else the committed images.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <set>

#include "stoker/data/load/image_loader.h"
#include "support/as_nobody.h"
#include "support/images.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace stoker::data {
namespace {

namespace fs = std::filesystem;

constexpr int kImages = 1000, kSources = 20;

// Ways to damage a JPEG file.
std::string truncated(const std::string& jpeg) { return jpeg.substr(0, jpeg.size() / 2); }
std::string swapped(const std::string& jpeg) { return jpeg.substr(jpeg.size() / 2) + jpeg.substr(0, jpeg.size() / 2); }
std::string with_zeroed_page(std::string jpeg) {  // as a failing disk may return it
  std::fill_n(jpeg.begin(), std::min<std::size_t>(jpeg.size(), 4096), '\0');
  return jpeg;
}

std::size_t place_of(const std::string& jpeg, std::initializer_list<const char*> markers) {
  for (const char* marker : markers) {
    if (const std::size_t at = jpeg.find(marker); at != std::string::npos) {
      return at;
    }
  }
  throw std::runtime_error("a JPEG without that marker");
}

// Flips one bit in every 40 bytes of the coded pixels.
std::string with_flipped_bits(std::string jpeg) {
  for (std::size_t at = place_of(jpeg, {"\xFF\xDA"}) + 30; at + 2 < jpeg.size(); at += 40) {
    jpeg[at] = static_cast<char>(jpeg[at] ^ (1 << (at % 8)));
  }
  return jpeg;
}

std::string with_huge_header(std::string jpeg) {  // 65,500 x 65,500 pixels
  jpeg.replace(place_of(jpeg, {"\xFF\xC0", "\xFF\xC2"}) + 5, 4, "\xFF\xDC\xFF\xDC");
  return jpeg;
}

// Repeats the last scan of a progressive JPEG 200 times; each scan costs a pass over the image.
std::string with_many_scans(const std::string& progressive) {
  const std::size_t last = progressive.rfind("\xFF\xDA"), end = progressive.rfind("\xFF\xD9");
  std::string out = progressive.substr(0, end);
  for (int i = 0; i < 200; ++i) {
    out += progressive.substr(last, end - last);
  }
  return out + "\xFF\xD9";
}

// The JPEG files that the thousand images are made from.
std::vector<std::string> sources() {
  fs::path folder = testing::shared_data("imagenet-sample");
  if (folder.empty()) {
    folder = testing::source_folder() / "tests/data/broken-images/exif";
  }
  const std::vector<fs::path> paths = testing::files_below(folder);
  std::vector<std::string> files;
  for (std::size_t i = 0; i < std::min<std::size_t>(paths.size(), kSources); ++i) {
    files.push_back(read_text(paths[i]));
  }
  return files;
}

std::string key_of(int number) { return fmt::format("{}/{:04}.jpg", number % 2 == 0 ? "even" : "odd", number); }

class CorruptImagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::permissions(folder_.path(), fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
    const std::vector<std::string> files = sources();
    for (std::size_t i = 0; i < files.size(); ++i) {  // the other images are links to these
      folder_.write(key_of(static_cast<int>(i)), files[i]);
    }
    for (int number = static_cast<int>(files.size()); number < kImages; ++number) {
      fs::create_hard_link(folder_ / key_of(number % static_cast<int>(files.size())), folder_ / key_of(number));
    }
    write(999, testing::small_png(7, 60, 50));                            // a PNG named .jpg is a good image
    options_.policy = {.out_width = 32, .out_height = 32, .flip = true};  // whole images: no damage is cropped away
    options_.batch = 64;
    options_.seed = 11;
    options_.bad = {.on_bad = OnBad::kReplace, .budget = 0.01};
    options_.bad.listener = [this](const core::BadSample& bad) { told_.push_back(bad.name + ": " + bad.reason); };
    options_.split = open_image_folder(folder_.path(), {.val = 0}).train;
    jpeg_ = files.front();
  }

  // Replaces a link by a file, so that the other links keep their content.
  void write(int number, const std::string& bytes) const {
    fs::remove(folder_ / key_of(number));
    folder_.write(key_of(number), bytes);
  }

  // Damages nine images that were good when the folder was scanned.
  void damage() {
    const fs::path progressive = "tests/data/broken-images/valid_but_unusual/progressive_test.jpg";
    write(100, truncated(jpeg_));
    write(201, with_flipped_bits(jpeg_));
    write(302, with_zeroed_page(jpeg_));
    write(403, swapped(jpeg_));
    write(504, with_huge_header(jpeg_));
    fs::remove(folder_ / key_of(605));
    write(706, jpeg_);
    fs::permissions(folder_ / key_of(706), fs::perms::none);
    write(807, "");
    write(908, with_many_scans(read_text(testing::source_folder() / progressive)));
    damaged_ = {100, 201, 302, 403, 504, 605, 706, 807, 908};
  }

  struct Epoch {
    std::map<std::string, std::uint64_t> rows;  // hash of an image's pixels by path; a path's first row counts
    std::uint64_t hash = 0;                     // of all batches
    std::vector<std::string> told;
  };
  Epoch epoch(int threads) {
    options_.threads = threads;
    told_.clear();
    ImageLoader loader(options_);
    Epoch out;
    std::set<std::int64_t> seen;
    while (const std::optional<core::Batch> batch = loader.next()) {
      const at::Tensor& images = (*batch)["image"];
      const auto bytes = static_cast<std::size_t>(images.nbytes() / static_cast<std::size_t>(batch->size()));
      const auto* pixels = images.const_data_ptr<std::uint8_t>();
      for (const std::int64_t index : batch->indices()) {
        const std::uint64_t hash = testing::fnv1a({pixels, bytes});
        out.rows.try_emplace(std::string(options_.split.source->key(index)), hash);
        out.hash = (out.hash * 31 + hash) * 31 + static_cast<std::uint64_t>(index);
        pixels += bytes;
      }
    }
    out.told.assign(told_.begin(), told_.end());
    return out;
  }

  void expect_all_is_well(const Epoch& good) {
    const Epoch expected = epoch(0);
    EXPECT_EQ(expected.told.size(), damaged_.size());
    for (const int number : damaged_) {
      EXPECT_THAT(expected.told, ::testing::Contains(::testing::HasSubstr(key_of(number) + ": "))) << "is not named";
      EXPECT_FALSE(expected.rows.contains(key_of(number)));
    }
    EXPECT_EQ(expected.rows.size(), kImages - damaged_.size());
    std::size_t changed = 0;
    for (const auto& [key, hash] : expected.rows) {
      changed += good.rows.at(key) == hash ? 0 : 1;
    }
    EXPECT_LE(changed, damaged_.size());  // images that are a stand-in before their own turn
    for (const int threads : {1, 2, 4}) {
      const Epoch found = epoch(threads);
      EXPECT_EQ(found.hash, expected.hash) << threads << " threads";
      EXPECT_EQ(found.told, expected.told) << threads << " threads";
    }
  }

  testing::TempFolder folder_;
  ImageLoaderOptions options_;
  std::vector<std::string> told_;
  std::vector<int> damaged_;
  std::string jpeg_;
};

TEST_F(CorruptImagesTest, AreNamedAndReplacedAndChangeNothingElse) {
  const Epoch good = epoch(2);
  EXPECT_THAT(good.told, ::testing::IsEmpty());
  EXPECT_EQ(good.rows.size(), std::size_t{kImages});
  damage();
  // In a child process whose user may not read the file without permissions; the alarm ends it if it hangs.
  EXPECT_EQ(testing::as_nobody([&] {
              ::alarm(300);
              expect_all_is_well(good);
              return HasFailure() ? 1 : 0;
            }),
            0);
}

}  // namespace
}  // namespace stoker::data
