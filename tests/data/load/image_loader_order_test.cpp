// SPDX-License-Identifier: Apache-2.0
// The loader with an order that may repeat samples: the batches are the same for every number of threads and ranks and
// after every resume, also with a bad image. Copies of an image are augmented differently.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>

#include "stoker/base/error.h"
#include "stoker/data/load/image_loader.h"
#include "stoker/data/order/mixture.h"
#include "stoker/data/order/weighted_sampler.h"
#include "support/images.h"
#include "support/loader_batches.h"
#include "support/temp_folder.h"

namespace stoker::data {
namespace {

enum class Kind { kBalanced, kMixture };

class ImageLoaderOrder : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 20; ++i) {  // 3 of class a
      folder_.write((i < 3 ? "a/" : "b/") + std::to_string(i) + ".png", testing::small_png(i, 24 + i % 4, 22));
    }
    folder_.write("b/damaged.png", testing::small_png(20).substr(0, 50));
    options_.split = open_image_folder(folder_.path(), {.val = 0}).train;
    options_.policy = {.crop = augment::Crop::kRandomResized, .out_width = 12, .out_height = 10, .flip = true};
    options_.policy.operations = {augment::ColourJitter{.brightness = 0.4, .hue = 0.1}, augment::Erase{}};
    options_.mix = {.mixup = 0, .cutmix = 0, .block = 2};
    options_.bad.on_bad = OnBad::kReplace;
    options_.batch = 8;
    options_.seed = 5;
  }

  [[nodiscard]] std::shared_ptr<const BatchOrder> order(Kind kind, int rank, int ranks) const {
    if (kind == Kind::kBalanced) {
      WeightedSamplerOptions options{.draws = 43, .batch = 8, .seed = 5, .rank = rank, .ranks = ranks};
      options.weights = balanced_weights(options_.split.labels);
      return std::make_shared<WeightedSampler>(options);
    }
    MixtureOptions options{.draws = 43, .batch = 8, .seed = 5, .rank = rank, .ranks = ranks};
    options.sets = {{3, 1}, {18, 2}};
    return std::make_shared<Mixture>(options);
  }

  // Hash of two epochs of 6 batches, with the slices of all ranks joined. All loaders are restarted at the calls in
  // `restarts`.
  [[nodiscard]] std::uint64_t hash(Kind kind, int threads, int ranks, const std::set<int>& restarts) const {
    std::vector<std::unique_ptr<ImageLoader>> loaders;
    const auto begin = [&](core::Position start) {
      loaders.clear();
      for (int rank = 0; rank < ranks; ++rank) {
        ImageLoaderOptions options = options_;
        options.order = order(kind, rank, ranks);
        options.start = start;
        options.threads = threads;
        options.rank = rank;
        options.ranks = ranks;
        loaders.push_back(std::make_unique<ImageLoader>(options));
      }
    };
    begin({});
    std::uint64_t value = 1;
    for (int call = 0; call < 2 * 7; ++call) {
      if (restarts.contains(call)) {
        begin(loaders.front()->position());
      }
      std::array<std::vector<std::uint8_t>, 4> joined;  // over all ranks: image, target, target_mixed, share
      for (const auto& loader : loaders) {
        const std::optional<core::Batch> batch = loader->next();
        for (std::size_t i = 0; batch && i < batch->fields().size(); ++i) {
          const at::Tensor& values = batch->fields()[i].values;
          const auto* bytes = static_cast<const std::uint8_t*>(values.const_data_ptr());
          joined[i].insert(joined[i].end(), bytes, bytes + values.nbytes());
        }
      }
      for (const auto& bytes : joined) {
        value = value * 131 + testing::fnv1a(bytes);
      }
    }
    return value;
  }

  testing::TempFolder folder_;
  ImageLoaderOptions options_;
};

TEST_F(ImageLoaderOrder, OneHashForThreadsRanksAndResumes) {
  for (const bool mixed : {false, true}) {
    options_.mix = {.mixup = mixed ? 0.5 : 0, .cutmix = mixed ? 1.0 : 0, .block = 2};
    for (const Kind kind : {Kind::kBalanced, Kind::kMixture}) {
      const std::uint64_t expected = hash(kind, 0, 1, {});
      for (const int threads : {1, 2, 4}) {
        for (const int ranks : {1, 2, 4}) {
          ASSERT_EQ(hash(kind, threads, ranks, {}), expected) << threads << " threads, " << ranks << " ranks";
          ASSERT_EQ(hash(kind, threads, ranks, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}), expected) << "resumed";
        }
      }
    }
  }
  EXPECT_NE(hash(Kind::kBalanced, 0, 1, {}), hash(Kind::kMixture, 0, 1, {}));
}

TEST_F(ImageLoaderOrder, CopiesOfAnImageAreAugmentedDifferently) {
  options_.order = order(Kind::kBalanced, 0, 1);
  ImageLoader loader(options_);
  std::map<std::int64_t, std::set<std::uint64_t>> versions;
  std::int64_t rows = 0, of_class_a = 0;
  while (const auto batch = loader.next()) {
    const at::Tensor& images = (*batch)["image"];
    for (std::int64_t row = 0; row < batch->size(); ++row, ++rows) {
      const auto bytes = static_cast<std::size_t>(images.stride(0));
      const auto* first = images.const_data_ptr<std::uint8_t>() + static_cast<std::size_t>(row) * bytes;
      versions[batch->indices()[static_cast<std::size_t>(row)]].insert(testing::fnv1a({first, bytes}));
      of_class_a += (*batch)["target"].const_data_ptr<std::int64_t>()[row] == 0 ? 1 : 0;
    }
  }
  std::size_t different = 0;
  for (const auto& [index, hashes] : versions) {
    different += hashes.size();
  }
  EXPECT_EQ(rows, 43);
  EXPECT_EQ(different, 43U);
  EXPECT_GE(of_class_a, 12);  // half of 43 draws, although only a seventh of the images have that class
  EXPECT_LE(of_class_a, 31);
}

TEST_F(ImageLoaderOrder, AnOrderOfOtherSamplesIsRefused) {
  WeightedSamplerOptions options{.batch = 8};
  options.weights = {1, 1};
  options_.order = std::make_shared<WeightedSampler>(options);
  EXPECT_THROW(ImageLoader{options_}, ConfigError);
}

}  // namespace
}  // namespace stoker::data
