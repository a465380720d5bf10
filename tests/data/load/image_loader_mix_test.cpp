// SPDX-License-Identifier: Apache-2.0
// The loader with every augmentation on: MixUp and CutMix depend on the place in the global batch, not on threads,
// ranks, where the loader started, or unreadable images.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/data/load/image_loader.h"
#include "support/images.h"
#include "support/loader_batches.h"
#include "support/temp_folder.h"

namespace stoker::data {
namespace {

using testing::Batches;
using testing::expect_same;
using testing::run;

class MixingLoader : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 23; ++i) {
      folder_.write((i % 3 == 0 ? "a/" : "b/") + std::to_string(i) + ".png", testing::small_png(i, 14 + i % 4, 12));
    }
    open();
    options_.policy = {.crop = augment::Crop::kRandomResized, .out_width = 8, .out_height = 6, .flip = true};
    options_.batch = 8;  // 23 samples: 8, 8, 7
    options_.seed = 3;
    options_.threads = 2;
  }
  void open() { options_.split = open_image_folder(folder_.path(), {.val = 0}).train; }
  testing::TempFolder folder_;
  ImageLoaderOptions options_;
};

// With every augmentation on, batches joined over ranks are the same; short batches stay unmixed.
TEST_F(MixingLoader, MixedBatchesAreTheSameForThreadsRanksAndStarts) {
  options_.policy.alternate = true;
  options_.policy.operations = {augment::Affine{.degrees = 20}, augment::ColourJitter{.brightness = 0.4, .hue = 0.1},
                                augment::Grey{}, augment::Blur{.kernel = 3}, augment::Erase{}};
  const auto plain = run(options_, 8);
  options_.mix = {.mixup = 1, .cutmix = 1, .block = 2};
  options_.threads = 0;
  const auto expected = run(options_, 8);
  for (const auto& [threads, depth] : {std::pair{1, 2}, {4, 3}, {2, 1}}) {
    options_.threads = threads;
    options_.depth = depth;
    const auto batches = run(options_, 8);
    for (std::size_t i = 0; i < batches.size(); ++i) {
      expect_same(batches[i], expected[i]);
    }
  }
  for (const int start : {1, 2}) {
    options_.start = {0, start};
    ImageLoader late(options_);
    for (std::size_t i = static_cast<std::size_t>(start); i < expected.size(); ++i) {
      expect_same(late.next(), expected[i]);
    }
  }
  options_.start = {};
  for (const int ranks : {2, 4}) {
    options_.ranks = ranks;
    std::vector<std::unique_ptr<ImageLoader>> loaders;
    for (options_.rank = 0; options_.rank < ranks; ++options_.rank) {
      loaders.push_back(std::make_unique<ImageLoader>(options_));
    }
    for (const auto& whole : expected) {
      std::vector<core::Batch> parts;
      for (const auto& loader : loaders) {
        std::optional<core::Batch> part = loader->next();
        ASSERT_EQ(part.has_value(), whole.has_value());
        if (part) {
          parts.push_back(std::move(*part));
        }
      }
      for (const char* field : {"image", "target", "target_mixed", "share"}) {
        std::vector<at::Tensor> values;
        for (const core::Batch& part : parts) {
          values.push_back(part[field]);
        }
        ASSERT_TRUE(!whole || at::cat(values).equal((*whole)[field])) << ranks << " ranks: " << field;
      }
    }
  }
  for (const std::size_t i : {0, 1, 2, 4}) {
    const bool whole = expected[i]->size() == 8;
    EXPECT_EQ((*expected[i])["image"].equal((*plain[i])["image"]), !whole) << i;
    EXPECT_EQ((*expected[i])["share"].eq(1).all().const_data_ptr<bool>()[0], !whole) << i;
    EXPECT_TRUE((*expected[i])["target"].equal((*plain[i])["target"]));
    EXPECT_TRUE(whole || (*expected[i])["target_mixed"].equal((*expected[i])["target"]));
  }
}

// In blocks of two the partner is the other row, and MixUp is a weighted mean that the test can compute.
TEST_F(MixingLoader, SharesAndPartnersAreWhatThePixelsShow) {
  const auto plain = run(options_, 2);
  options_.mix = {.mixup = 1, .block = 2};
  options_.threads = 2;
  const auto mixed = run(options_, 2);
  for (std::size_t step = 0; step < 2; ++step) {
    const at::Tensor before = (*plain[step])["image"].to(at::kFloat), after = (*mixed[step])["image"].to(at::kFloat);
    const at::Tensor target = (*mixed[step])["target"], other = (*mixed[step])["target_mixed"];
    for (std::int64_t row = 0; row < 8; ++row) {
      const float share = (*mixed[step])["share"].const_data_ptr<float>()[row];
      const at::Tensor expected = before[row] * share + before[row ^ 1] * (1 - share);
      EXPECT_LE((after[row] - expected).abs().max().const_data_ptr<float>()[0], 0.51F);
      EXPECT_TRUE(other[row].equal(target[row ^ 1]));
    }
  }
}

TEST_F(MixingLoader, BlocksThatDoNotFitARankAreRefused) {
  options_.ranks = 4;
  options_.mix = {.mixup = 1, .block = 4};
  EXPECT_THROW(ImageLoader{options_}, ConfigError);
  options_.ranks = 2;
  EXPECT_NO_THROW(ImageLoader{options_});
  options_.ranks = 3;
  EXPECT_THROW(ImageLoader{options_}, ConfigError);
}

// A stand-in is a partner like any other image. A block with a skipped row stays unmixed.
TEST_F(MixingLoader, BadImagesMixByTheirStandInsOrNotAtAll) {
  folder_.write("b/13.png", "no image");  // in the second batch
  open();
  options_.mix = {.mixup = 1, .block = 2};
  options_.bad.budget = 0.1;
  options_.shuffle = false;
  Batches replaced;
  for (const OnBad on_bad : {OnBad::kReplace, OnBad::kSkip}) {
    options_.bad.on_bad = on_bad;
    options_.threads = 0;
    const Batches expected = run(options_, 4);
    options_.threads = 4;
    const Batches again = run(options_, 4);
    std::int64_t rows = 0, whole = 0;
    for (std::size_t step = 0; step < 3; ++step) {
      expect_same(again[step], expected[step]);
      const core::Batch& batch = *expected[step];
      ASSERT_EQ(batch["share"].size(0), batch.size());
      rows += batch.size();
      whole += batch["share"].eq(1).sum().item<std::int64_t>();
      if (batch.size() == 8) {
        const at::Tensor swapped = batch["target"].view({4, 2}).flip(1).flatten();
        EXPECT_TRUE(batch["target_mixed"].equal(swapped));
      }
    }
    if (on_bad == OnBad::kSkip) {  // the other rows equal the batch with the stand-in, which was its fourth row
      for (std::int64_t row = 0; row < 7; ++row) {
        for (const core::Field& field : expected[1]->fields()) {
          const at::Tensor there = (*replaced[1])[field.name][row < 3 ? row : row + 1];
          EXPECT_TRUE(row == 2 || field.values[row].equal(there)) << field.name << " " << row;
        }
      }
      EXPECT_TRUE((*expected[1])["target_mixed"][2].equal((*expected[1])["target"][2]));
    }
    replaced = run(options_, 2);
    EXPECT_EQ(rows, on_bad == OnBad::kReplace ? 23 : 22);
    EXPECT_EQ(whole, on_bad == OnBad::kReplace ? 7 : 7 + 1);  // the short batch, and the row without a partner
  }
}

}  // namespace
}  // namespace stoker::data
