// SPDX-License-Identifier: Apache-2.0
// The batches of two epochs have one hash for every number of threads (also if it changes while loading) and ranks
// (slices joined), for files and a tar, straight and resumed, with vector instructions and without, for images that are
// decoded again or kept, with an index of the rows of JPEGs and without, and for JPEGs and PNG files of the pixels that
// libjpeg-turbo decodes from them. Every augmentation is on, the tail is uneven, and one image is damaged.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <tuple>

#include "stoker/data/load/image_loader.h"
#include "support/images.h"
#include "support/library_pixels.h"
#include "support/tar_builder.h"
#include "support/temp_folder.h"

namespace stoker::data {
namespace {

using Loaders = std::vector<std::unique_ptr<ImageLoader>>;  // one per rank

struct Way {
  int threads = 1, ranks = 1;
  bool tar = false, resumed = false, plain = false, kept = false;
  bool rows = false;     // with an index of the rows of JPEGs
  bool library = false;  // pixels of libjpeg-turbo
};

class HashMatrix : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto from = testing::source_folder() / "tests/data/broken-images";
    int number = 0;
    for (const char* kind : {"exif", "valid_but_unusual"}) {  // JPEG and PNG of every colour space and orientation
      for (const auto& entry : std::filesystem::directory_iterator(from / kind)) {
        add(entry.path().filename().native(), read_text(entry.path()));
        ++number;
      }
    }
    for (; number < 26; ++number) {
      add(std::to_string(number) + ".png", testing::small_png(number, 90 + number, 70));
    }
    add("damaged.jpg", read_text(from / "made_here/hopper_cut_300.jpg"));
    files_.write("set.tar", tar_.done());
    library_split_ = open_image_folder(files_.path() / "library", {.val = 0}).train;
    ASSERT_EQ(library_split_.size(), 27);
    options_.policy = {.crop = augment::Crop::kRandomResized, .out_width = 32, .out_height = 24, .flip = true};
    options_.policy.alternate = true;
    options_.policy.operations = {augment::Affine{.degrees = 20}, augment::ColourJitter{.brightness = 0.4, .hue = 0.1},
                                  augment::Grey{}, augment::Blur{.kernel = 3}, augment::Erase{}};
    options_.mix = {.mixup = 1, .cutmix = 1, .block = 2};
    options_.bad.on_bad = OnBad::kReplace;
    options_.batch = 8;  // 27 images: 8, 8, 8, 3
    options_.seed = 5;
    folder_split_ = open_image_folder(files_.path() / "set", {.val = 0}).train;
    tar_split_ = open_image_folder(files_.path() / "set.tar", {.val = 0}).train;
    ASSERT_EQ(folder_split_.size(), 27);
    ASSERT_EQ(tar_split_.size(), 27);
  }

  [[nodiscard]] std::uint64_t hash(const Way& way) const {
    ImageLoaderOptions options = options_;
    options.split = way.library ? library_split_ : way.tar ? tar_split_ : folder_split_;
    options.threads = way.threads;
    options.depth = 1 + way.threads % 3;
    options.plain = way.plain;
    options.ranks = way.ranks;
    if (way.kept) {
      options.store = std::make_shared<PixelStore>(options.split.source->size(), 1 << 20);
    }
    if (way.rows) {
      options.rows = std::make_shared<RowIndex>(*options.split.source,
                                                RowIndexOptions{.cache = files_.path() / "cache", .from_samples = 1});
    }
    Loaders loaders;
    const auto begin = [&](core::Position start) {
      loaders.clear();
      options.start = start;
      for (options.rank = 0; options.rank < way.ranks; ++options.rank) {
        loaders.push_back(std::make_unique<ImageLoader>(options));
      }
    };
    begin({});
    std::uint64_t value = 0;
    for (int call = 0; call < 2 * 5; ++call) {
      if (way.resumed && (call == 2 || call == 6)) {
        begin(loaders.front()->position());
      }
      value = value * 31 + joined(loaders);
    }
    return value;
  }

  // The hash of the next global batch: each field, joined over the ranks in their order.
  static std::uint64_t joined(const Loaders& loaders) {
    std::map<std::string, std::vector<std::uint8_t>> fields;  // empty at an epoch's end
    for (const auto& loader : loaders) {
      const std::optional<core::Batch> batch = loader->next();
      if (!batch) {
        continue;
      }
      for (const core::Field& field : batch->fields()) {
        EXPECT_TRUE(field.values.is_contiguous());
        const auto* bytes = static_cast<const std::uint8_t*>(field.values.const_data_ptr());
        auto& all = fields[field.name];
        all.insert(all.end(), bytes, bytes + field.values.nbytes());
      }
      auto& indices = fields["indices"];
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(batch->indices().data());
      indices.insert(indices.end(), bytes, bytes + batch->indices().size() * sizeof(std::int64_t));
    }
    std::uint64_t value = 1;
    for (const auto& [name, bytes] : fields) {
      value = value * 131 + testing::fnv1a(bytes);
    }
    return value;
  }

  ImageSplit folder_split_, tar_split_, library_split_;
  ImageLoaderOptions options_;

 private:
  void add(const std::string& name, const std::string& bytes) {
    const std::string key = (count_++ % 2 == 0 ? "a/" : "b/") + name;
    files_.write("set/" + key, bytes);
    files_.write("library/" + key, testing::with_library_pixels(bytes));
    tar_.add(key, bytes);
  }

  testing::TempFolder files_;
  testing::TarBuilder tar_;
  int count_ = 0;
};

TEST_F(HashMatrix, EveryWayGivesTheSameBatches) {
  const std::uint64_t expected = hash({.threads = 0, .library = true});
  for (const int threads : {1, 2, 4}) {
    for (const int ranks : {1, 2, 4}) {
      for (int switches = 0; switches < 32; ++switches) {
        const Way way{.threads = threads,
                      .ranks = ranks,
                      .tar = (switches & 1) != 0,
                      .resumed = (switches & 2) != 0,
                      .plain = (switches & 4) != 0,
                      .kept = (switches & 8) != 0,
                      .rows = (switches & 16) != 0};
        ASSERT_EQ(hash(way), expected) << threads << " threads, " << ranks << " ranks, tar " << way.tar << ", resumed "
                                       << way.resumed << ", plain " << way.plain << ", kept " << way.kept << ", rows "
                                       << way.rows;
      }
    }
  }
}

// next() loads on the operators' threads, but only if a batch takes long enough.
TEST_F(HashMatrix, LoadingBetweenStepsOnSeveralThreadsGivesTheSameBatches) {
  const int before = at::get_num_threads();
  const std::uint64_t expected = hash({.threads = 0});
  std::mutex mutex;
  std::set<std::thread::id> threads;
  options_.on_stage = [&](Stage stage, std::int64_t) {
    if (stage == Stage::kRead) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    }
  };
  for (const auto& [intra_op, cores, most] : {std::tuple{3, 3, 3U}, {3, 2, 2U}, {1, 3, 1U}, {3, 0, 1U}}) {
    at::set_num_threads(intra_op);
    options_.cores = cores;
    threads.clear();
    EXPECT_EQ(hash({.threads = 0}), expected) << intra_op << " threads, " << cores << " cores";
    EXPECT_EQ(hash({.threads = 0, .ranks = 2, .resumed = true}), expected) << intra_op << ", " << cores;
    EXPECT_EQ(threads.size(), most) << intra_op << " threads, " << cores << " cores";
  }
  at::set_num_threads(before);
}

// Threads are added while files are slow to read, and removed while the consumer is slow.
TEST_F(HashMatrix, ThreadsThatComeAndGoGiveTheSameBatches) {
  constexpr std::size_t kCalls = 120, kSlowFiles = 40;
  options_.split = folder_split_;
  options_.threads = 0;
  std::vector<std::uint64_t> expected;
  std::atomic<bool> slow_disk = true;  // outlives the loaders
  Loaders loaders;
  loaders.push_back(std::make_unique<ImageLoader>(options_));
  for (std::size_t call = 0; call < kCalls; ++call) {
    expected.push_back(joined(loaders));
  }
  options_.on_stage = [&](Stage stage, std::int64_t) {
    if (stage == Stage::kRead && slow_disk) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  };
  options_.threads = 1;
  options_.cores = 2;
  loaders.clear();
  loaders.push_back(std::make_unique<ImageLoader>(options_));
  int most = 1, now = 1;
  for (std::size_t call = 0; call < kCalls && (call < kSlowFiles || now == most); ++call) {
    ASSERT_EQ(joined(loaders), expected[call]) << "call " << call << ", " << now << " threads, before " << most;
    now = loaders.front()->figures().value().threads;
    most = std::max(most, now);
    if (call + 1 >= kSlowFiles) {
      slow_disk = false;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  EXPECT_GT(most, 1);
  EXPECT_LT(now, most);
}

}  // namespace
}  // namespace stoker::data
