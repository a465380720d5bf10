// SPDX-License-Identifier: Apache-2.0
// A host without memory: whichever allocation of a loader fails, on its threads or on the consumer's, no batch is lost,
// repeated or changed, nothing ends the process, and no unreadable image is reported twice.
#include <gtest/gtest.h>

#include <algorithm>

#include "stoker/base/error.h"
#include "stoker/data/load/image_loader.h"
#include "support/images.h"
#include "support/no_batch_lost.h"
#include "support/temp_folder.h"

namespace stoker::data {
namespace {

using testing::at_every_new;
using testing::FailingNew;
using testing::loses_nothing_at_new;
using testing::MakeSource;
using testing::MayAllocate;
using testing::take_all;
using testing::Whose;

constexpr int kCalls = 5;  // an epoch of 3 batches, its end, and a batch of the next epoch

class ImageLoaderMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 6; ++i) {
      folder_.write((i < 3 ? "a/" : "b/") + std::to_string(i) + ".png", testing::small_png(i));
    }
    options_.split = open_image_folder(folder_.path(), {.val = 0}).train;
    options_.policy = {.crop = augment::Crop::kRandomResized, .out_width = 4, .out_height = 3, .flip = true};
    options_.batch = 2;
    options_.threads = 2;
  }
  [[nodiscard]] MakeSource loader() const {
    return [this] { return std::make_unique<ImageLoader>(options_); };
  }
  void loses_nothing() const {
    EXPECT_GT(loses_nothing_at_new(loader(), kCalls, Whose::kMine), 10);
    if (options_.threads > 0) {
      EXPECT_GT(loses_nothing_at_new(loader(), kCalls, Whose::kOthers), 10);
    }
  }
  testing::TempFolder folder_;
  ImageLoaderOptions options_;
};

TEST_F(ImageLoaderMemoryTest, ThreadsLoseNothing) { loses_nothing(); }

TEST_F(ImageLoaderMemoryTest, TunedThreadsLoseNothing) {
  options_.threads = 1;
  options_.cores = 2;
  options_.depth = 1;
  loses_nothing();
}

TEST_F(ImageLoaderMemoryTest, TheCallersThreadsLoseNothing) {
  options_.threads = 0;
  loses_nothing();
  options_.cores = 2;
  loses_nothing();
}

TEST_F(ImageLoaderMemoryTest, MixedBatchesAreMixedOnce) {
  options_.mix.mixup = 0.2;
  options_.mix.block = 2;
  options_.once = true;
  loses_nothing();
}

TEST_F(ImageLoaderMemoryTest, StoredPixelsLoseNothing) {
  const MakeSource with_store = [this] {
    ImageLoaderOptions options = options_;
    options.store = std::make_shared<PixelStore>(6, 1 << 20);
    return std::make_unique<ImageLoader>(options);
  };
  EXPECT_GT(loses_nothing_at_new(with_store, kCalls, Whose::kOthers), 10);
}

// The list of bad images is complete and has each one once per epoch, also if its batch was made several times.
TEST_F(ImageLoaderMemoryTest, UnreadableImagesAreReportedOnce) {
  folder_.write("a/2.png", "\x89PNG\r\n\x1A\nand no more");
  folder_.write("b/4.png", "");
  std::vector<std::pair<std::int64_t, std::int64_t>> reported;  // (epoch, index)
  reported.reserve(10);
  const auto sorted = [](auto pairs) {
    std::ranges::sort(pairs);
    return pairs;
  };
  options_.bad.budget = 1;
  options_.bad.listener = [&](const core::BadSample& bad) {
    delete new int;  // may fail, as a list or an event may
    reported.emplace_back(bad.epoch, bad.index);
  };
  for (const OnBad on_bad : {OnBad::kReplace, OnBad::kSkip}) {
    options_.bad.on_bad = on_bad;
    options_.threads = on_bad == OnBad::kSkip ? 0 : 2;
    reported.clear();
    const testing::Batches expected = take_all(loader(), 4);
    const auto all = sorted(reported);
    ASSERT_EQ(all.size(), 2U);
    for (const Whose whose : {Whose::kMine, Whose::kOthers}) {
      at_every_new(whose, [&] {
        reported.clear();
        testing::expect_same(take_all(loader(), 4), expected);
        const MayAllocate here;
        EXPECT_EQ(sorted(reported), all);
      });
    }
  }
}

// The error comes at every call as long as there is no memory; then the same batch comes.
TEST_F(ImageLoaderMemoryTest, AFailureThatLastsIsThrownAtEachCall) {
  const testing::Batches expected = take_all(loader(), kCalls);
  for (const int threads : {2, 0}) {
    options_.threads = threads;
    for (const Whose whose : {Whose::kMine, Whose::kOthers}) {
      if (threads == 0 && whose == Whose::kOthers) {
        continue;
      }
      const auto source = loader()();
      for (std::size_t call = 0; call < expected.size(); ++call) {
        FailingNew failing(whose);
        failing.fail_from(1);
        int errors = 0;
        for (int attempt = 0; attempt < 3 && errors == attempt; ++attempt) {
          try {
            const std::optional<core::Batch> batch = source->next();
            failing.stop();  // made before, or it needs no memory
            testing::expect_same(batch, expected[call]);
          } catch (const std::bad_alloc&) {
            ++errors;
          }
        }
        failing.stop();
        EXPECT_TRUE(errors == 0 || errors == 3) << errors;
        if (errors > 0) {
          testing::expect_same(source->next(), expected[call]);
        }
      }
    }
  }
}

TEST_F(ImageLoaderMemoryTest, EndsAfterAnyFailure) {
  for (const Whose whose : {Whose::kMine, Whose::kOthers}) {
    const int failures = at_every_new(whose, [&] {
      try {
        ImageLoader loader(options_);
        for (int call = 0; call < 2; ++call) {
          (void)loader.next();
        }
      } catch (const std::bad_alloc&) {
      }
    });
    EXPECT_GT(failures, 10);
  }
}

}  // namespace
}  // namespace stoker::data
