// SPDX-License-Identifier: Apache-2.0
// Lists of operations in a policy: each is drawn independently, by its address, and they are executed in order. Also
// erasing and flips.
#include "stoker/augment/operation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "stoker/augment/image_policy.h"
#include "stoker/base/error.h"
#include "support/images.h"

namespace stoker::augment {
namespace {

using testing::computed_image;

const std::vector<Operation> kAll = {
    Affine{.degrees = 20, .translate_x = 0.1, .min_scale = 0.8, .max_scale = 1.2, .shear_y = 10},
    ColourJitter{.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1}, Grey{.probability = 0.2},
    Blur{.kernel = 5}, Erase{}};

std::vector<std::uint8_t> run(const ImagePolicy& policy, const ImageDraw& drawn, const Image& image) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(policy.out_width * policy.out_height * image.channels));
  ResizeScratch scratch;
  execute(policy, drawn, image.view(), out, scratch);
  return out;
}

TEST(Operation, AListLeavesTheOtherDrawsAloneAndActsAfterThem) {
  ImagePolicy plain{.crop = Crop::kRandomResized, .out_width = 24, .out_height = 20, .flip = true};
  ImagePolicy full = plain;
  full.operations = kAll;
  const Image image = computed_image(60, 50, 3);
  PixelScratch scratch;
  int changed = 0;
  for (std::uint64_t sample = 0; sample < 50; ++sample) {
    const DrawKey key{.seed = 8, .epoch = 3, .sample = sample};
    const ImageDraw without = draw(plain, 60, 50, key);
    ImageDraw with = draw(full, 60, 50, key);
    std::vector<std::uint8_t> expected = run(plain, without, image);
    const std::vector<std::uint8_t> before = expected;
    execute(with.operations, {expected.data(), 24, 20, 3}, scratch);
    EXPECT_EQ(run(full, with, image), expected);
    changed += expected != before;
    with.operations = {};
    EXPECT_EQ(with, without);
  }
  EXPECT_EQ(changed, 50);
}

TEST(Operation, DrawsOfOneDoNotDependOnTheOthersAndFollowTheirAddress) {
  const DrawKey key{.seed = 4, .epoch = 2, .sample = 77};
  const DrawnOperations all = draw(kAll, 32, 32, key);
  for (const Operation& each : kAll) {
    const DrawnOperations alone = draw(std::span(&each, 1), 32, 32, key);
    for (std::size_t i = 0; i < alone.count; ++i) {
      EXPECT_EQ(std::ranges::count(std::span(all.list).first(all.count), alone.list[i]), 1);
    }
  }
  EXPECT_EQ(all, draw(kAll, 32, 32, key));
  for (const DrawKey& other : {DrawKey{5, 2, 77, 0}, {4, 3, 77, 0}, {4, 2, 78, 0}, {4, 2, 77, 1}}) {
    EXPECT_FALSE(all == draw(kAll, 32, 32, other));
  }
}

TEST(Operation, TheOrderIsTheLists) {
  const std::vector<Operation> forwards = {Blur{.kernel = 9, .min_sigma = 2}, Erase{.probability = 1}};
  const std::vector<Operation> backwards = {forwards[1], forwards[0]};
  PixelScratch scratch;
  Image first = computed_image(32, 32, 3), last = first;
  execute(draw(forwards, 32, 32, {}), {first.pixels.data(), 32, 32, 3}, scratch);
  execute(draw(backwards, 32, 32, {}), {last.pixels.data(), 32, 32, 3}, scratch);
  EXPECT_NE(first.pixels, last.pixels);
}

// Images equal those of earlier versions and other machines: if the hash changes, no earlier run can be repeated.
TEST(Operation, ImagesStayWhatTheyWere) {
  const ImagePolicy policy{.crop = Crop::kRandomResized,
                           .out_width = 24,
                           .out_height = 20,
                           .flip = true,
                           .alternate = true,
                           .operations = kAll};
  check(policy);
  std::vector<std::uint8_t> all;
  for (const int channels : {3, 1}) {
    const Image image = computed_image(60, 50, channels);
    for (std::uint64_t sample = 0; sample < 64; ++sample) {
      const DrawKey key{.seed = 12, .epoch = 5, .sample = sample};
      const std::vector<std::uint8_t> row = run(policy, draw(policy, 60, 50, key), image);
      all.insert(all.end(), row.begin(), row.end());
    }
  }
  EXPECT_EQ(testing::fnv1a(all), 295086263589295680U);
}

TEST(Operation, OneOfAKind) {
  EXPECT_NO_THROW(check(ImagePolicy{.operations = kAll}));
  EXPECT_THROW(check(ImagePolicy{.operations = {Grey{}, Blur{}, Grey{}}}), ConfigError);
  EXPECT_THROW(check(ImagePolicy{.operations = {Blur{.kernel = 2}}}), ConfigError);
}

TEST(Erase, PaintsItsRectangleAlone) {
  const Erase erase{.probability = 0.5, .min_area = 0.1, .max_area = 0.3, .value = {1, 2, 3}};
  int count = 0;
  double area = 0, log_ratio = 0;
  for (std::uint64_t sample = 0; sample < 2000; ++sample) {
    const auto drawn = draw(erase, 100, 90, {.seed = 2, .sample = sample});
    if (!drawn) {
      continue;
    }
    ASSERT_TRUE(drawn->left >= 0 && drawn->top >= 0 && drawn->width > 0 && drawn->height > 0);
    ASSERT_TRUE(drawn->left + drawn->width <= 100 && drawn->top + drawn->height <= 90);
    ++count;
    area += drawn->width * drawn->height / 9000.0;
    log_ratio += std::log(static_cast<double>(drawn->height) / drawn->width);
  }
  EXPECT_NEAR(count, 1000, 90);
  EXPECT_NEAR(area / count, 0.2, 0.01);
  EXPECT_NEAR(log_ratio / count, 0, 0.1);
  for (const int channels : {1, 3}) {
    const Image before = computed_image(20, 12, channels);
    Image image = before;
    execute(EraseDraw{.left = 5, .top = 3, .width = 7, .height = 4, .value = {1, 2, 3}},
            {image.pixels.data(), 20, 12, channels});
    for (int i = 0; i < 20 * 12 * channels; ++i) {
      const int c = i % channels, x = i / channels % 20, y = i / channels / 20;
      const bool inside = x >= 5 && x < 12 && y >= 3 && y < 7;
      ASSERT_EQ(image.pixels[static_cast<std::size_t>(i)], inside ? c + 1 : before.pixels[static_cast<std::size_t>(i)]);
    }
  }
  EXPECT_FALSE(draw(Erase{.probability = 1}, 1, 1, {}));  // no rectangle is smaller than one pixel
  EXPECT_THROW(check(Erase{.min_area = 0}), ConfigError);
  EXPECT_THROW(check(Erase{.max_area = 1.1}), ConfigError);
  EXPECT_THROW(check(Erase{.min_ratio = 4}), ConfigError);
  EXPECT_THROW(check(Erase{.probability = 2}), ConfigError);
}

// Jordan 2024, "94% on CIFAR-10 in 3.29 seconds", section 3.6.
TEST(ImagePolicy, AlternatingFlipShowsBothSidesInTwoEpochs) {
  const ImagePolicy alternating{.out_width = 8, .out_height = 8, .flip = true, .alternate = true};
  const ImagePolicy random{.out_width = 8, .out_height = 8, .flip = true};
  int flips = 0, repeats = 0;
  for (std::uint64_t sample = 0; sample < 1000; ++sample) {
    const auto flipped = [&](const ImagePolicy& policy, std::uint32_t epoch, std::uint16_t occurrence = 0) {
      return draw(policy, 8, 8, {.seed = 6, .epoch = epoch, .sample = sample, .occurrence = occurrence}).flipped;
    };
    const bool first = flipped(alternating, 0);
    for (std::uint32_t epoch = 0; epoch < 6; ++epoch) {
      ASSERT_EQ(flipped(alternating, epoch), first != (epoch % 2 == 1));
    }
    ASSERT_NE(flipped(alternating, 2, 1), first);  // drawn again within an epoch: the other side
    flips += first;
    repeats += flipped(random, 0) == flipped(random, 1);
  }
  EXPECT_NEAR(flips, 500, 65);
  EXPECT_NEAR(repeats, 500, 65);
}

}  // namespace
}  // namespace stoker::augment
