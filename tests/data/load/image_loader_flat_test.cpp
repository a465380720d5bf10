// SPDX-License-Identifier: Apache-2.0
// A loader's memory and open files are the same after many batches as after a few. Tested with images that stay
// decoded, with files and a tar that are read repeatedly, and with loaders that are created and destroyed. A
// sanitizer's allocator does not report allocated bytes; its leak check replaces this test.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <set>
#include <thread>

#include "stoker/data/load/image_loader.h"
#include "support/images.h"
#include "support/tar_builder.h"
#include "support/temp_folder.h"

namespace stoker::data {
namespace {

// What this process holds: heap bytes of all threads, open files, and threads.
struct Held {
  std::int64_t bytes = 0, files = 0, threads = 0;
};

Held held_now() {
  const auto entries = [](const char* folder) {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  };
  const struct mallinfo2 heap = ::mallinfo2();
  return {static_cast<std::int64_t>(heap.uordblks + heap.hblkhd), entries("/proc/self/fd"), entries("/proc/self/task")};
}

// The minimum of several measurements, since threads keep filling prefetched batches for a moment.
Held held() {
  Held least = held_now();
  for (int look = 0; look < 20; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const Held now = held_now();
    least = {std::min(least.bytes, now.bytes), std::min(least.files, now.files), std::min(least.threads, now.threads)};
  }
  return least;
}

// often: number of opportunities for a leak between the two measurements. Detects a leak of one of the heap's smallest
// blocks (32 bytes) at every tenth of them.
void expect_flat(const Held& before, const Held& after, std::int64_t often) {
  EXPECT_LT(after.bytes - before.bytes, std::max<std::int64_t>(often * 32 / 10, 1 << 14));
  EXPECT_EQ(after.files, before.files);
}

class FlatLoader : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::TarBuilder tar;
    for (int i = 0; i < 7; ++i) {
      const std::string key = (i % 2 == 0 ? "a/" : "b/") + std::to_string(i) + ".png";
      const std::string bytes = testing::small_png(i, 8, 8).substr(0, i == 6 ? 50 : std::string::npos);  // one damaged
      files_.write("set/" + key, bytes);
      tar.add(key, bytes);
    }
    files_.write("set.tar", tar.done());
    options_.policy = {.crop = augment::Crop::kNone, .out_width = 8, .out_height = 8, .flip = true};
    options_.mix = {.mixup = 1, .cutmix = 0, .block = 2};
    options_.bad.on_bad = OnBad::kReplace;
    options_.batch = 2;  // 4 batches per epoch, so that work done once per epoch is done often
    open("set");
  }

  void open(const char* name) { options_.split = open_image_folder(files_ / name, {.val = 0}).train; }

  // Takes that many batches; returns the numbers of threads seen on the way.
  static std::set<int> take(ImageLoader& loader, std::int64_t batches) {
    std::set<int> threads;
    while (batches > 0) {
      batches -= loader.next().has_value() ? 1 : 0;
      if (batches % 1000 == 0) {
        threads.insert(loader.figures()->threads);
      }
    }
    return threads;
  }

  testing::TempFolder files_;
  ImageLoaderOptions options_;
};

// The next batch is written into the memory of a batch that the consumer has released, which is still in the caches.
TEST_F(FlatLoader, BetweenStepsABatchGoesIntoTheMemoryOfTheOneBefore) {
  options_.threads = 0;
  options_.depth = 3;
  ImageLoader loader(options_);
  const void* memory = loader.next().value()["image"].const_data_ptr();
  EXPECT_EQ(loader.next().value()["image"].const_data_ptr(), memory);
  const core::Batch kept = loader.next().value();
  EXPECT_EQ(kept["image"].const_data_ptr(), memory);
  EXPECT_NE(loader.next().value()["image"].const_data_ptr(), memory);
}

TEST_F(FlatLoader, OverManyBatchesOfImagesThatStayDecoded) {
  options_.store = std::make_shared<PixelStore>(options_.split.source->size(), 1 << 20);
  options_.threads = 2;
  ImageLoader loader(options_);
  take(loader, 1000);
  const Held before = held();
  take(loader, 99'000);
  expect_flat(before, held(), 99'000 / 4);
}

TEST_F(FlatLoader, WhileTheNumberOfThreadsChanges) {
  options_.store = std::make_shared<PixelStore>(options_.split.source->size(), 1 << 20);
  options_.threads = 1;
  options_.cores = 3;
  ImageLoader loader(options_);
  take(loader, 1000);
  const Held before = held();
  std::set<int> threads = take(loader, 99'000);
  for (int more = 0; more < 20 && threads.size() == 1; ++more) {  // the number changes with time, not with batches
    threads.merge(take(loader, 50'000));
  }
  EXPECT_GT(threads.size(), 1U);
  expect_flat(before, held(), 99'000 / 4);
}

TEST_F(FlatLoader, WhileFilesAreReadAgainAndAgain) {
  for (const char* name : {"set", "set.tar"}) {
    SCOPED_TRACE(name);
    open(name);
    options_.threads = 2;
    ImageLoader loader(options_);
    take(loader, 500);
    const Held before = held();
    take(loader, 9500);
    expect_flat(before, held(), 9500 / 4);
  }
}

TEST_F(FlatLoader, WhileLoadersComeAndGo) {
  options_.threads = 3;
  const auto come_and_go = [&](int times) {
    for (int i = 0; i < times; ++i) {
      options_.start = {i, i % 5};
      ImageLoader loader(options_);
      take(loader, i % 3);
    }
  };
  come_and_go(20);
  const Held before = held();
  come_and_go(500);
  const Held after = held();
  expect_flat(before, after, 500);
  EXPECT_EQ(after.threads, before.threads);
}

}  // namespace
}  // namespace stoker::data
