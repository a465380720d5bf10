// SPDX-License-Identifier: Apache-2.0
// The defaults of an image run, and the policies that their names stand for. A default must not change by accident.
#include "stoker/tasks/image/recipe.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/tasks/image/augment.h"
#include "stoker/tasks/image/preprocessing.h"
#include "support/default_values.h"

namespace stoker::tasks {
namespace {

std::map<std::string, std::string> values(const ImageRecipeRequest& request, const ImageSetFacts& images,
                                          std::int64_t samples) {
  std::map<std::string, std::string> result;
  for (const core::PlanRow& row : image_recipe(request, images, samples)) {
    EXPECT_TRUE(result.emplace(row.key, row.value).second) << row.key << " appears twice";
  }
  return result;
}

ImageOptions with(const core::TaskValues& given) {
  ImageOptions options;
  image_options().overlay(options, given);
  return options;
}

TEST(ImageRecipe, ImagesStayDecodedWhereTheyFit) {
  ImageRecipeRequest request;
  request.memory = 8'000'000'000;
  EXPECT_EQ(values(request, {32, 32, 3}, 50'000).at("cache"), "192");  // 50,000 * 3,072 bytes and a quarter more
  EXPECT_EQ(values(request, {28, 28, 1}, 60'000).at("cache"), "59");
  EXPECT_EQ(values(request, {500, 375, 3}, 1'281'167).at("cache"), "0");
  request.memory = 600'000'000;
  EXPECT_EQ(values(request, {32, 32, 3}, 50'000).at("cache"), "0");
  request.memory = -1;  // not known
  EXPECT_EQ(values(request, {32, 32, 3}, 50'000).at("cache"), "0");
}

TEST(ImageRecipe, SmallImagesLieOnAGpuThatHasRoom) {
  ImageRecipeRequest request;
  EXPECT_EQ(values(request, {32, 32, 3}, 50'000).at("resident"), "off") << "no GPU";
  request.cuda = true;
  EXPECT_EQ(values(request, {32, 32, 3}, 50'000).at("resident"), "off") << "a build without the kernel";
  request.device_memory = 4 * 153'600'000;  // of which a quarter is 50,000 * 3,072 bytes
  EXPECT_EQ(values(request, {32, 32, 3}, 50'000).at("resident"), "auto");
  EXPECT_EQ(values(request, {32, 32, 3}, 50'001).at("resident"), "off");
  EXPECT_EQ(values(request, {500, 375, 3}, 100).at("resident"), "off");
  request.image_size = 32;  // they are stored there scaled
  EXPECT_EQ(values(request, {500, 375, 3}, 100).at("resident"), "auto");
}

TEST(ImageRecipe, SmallColourImages) {
  const auto plan = values({}, {32, 32, 3}, 45'000);
  EXPECT_EQ(plan.at("model"), "cnn");
  EXPECT_EQ(plan.at("image_size"), "32");
  EXPECT_EQ(plan.at("augment"), "pad_crop_flip");
  EXPECT_EQ(plan.at("batch"), "256");
  EXPECT_EQ(plan.at("optimizer"), "sgd");
  EXPECT_EQ(plan.at("schedule"), "one_cycle");
  EXPECT_EQ(plan.at("weight_decay"), "0.0005");
  EXPECT_EQ(plan.at("label_smoothing"), "0.1");
  for (const std::string model : {"cnn48", "cnn64"}) {
    ImageRecipeRequest request;
    request.model = model;
    auto wider = values(request, {32, 32, 3}, 45'000);
    EXPECT_EQ(std::exchange(wider.at("model"), "cnn"), model);
    EXPECT_EQ(wider, plan) << "job may replace one by the other when it makes a plan";
  }
}

TEST(ImageRecipe, SmallGreyImagesAreNotMirrored) {
  EXPECT_EQ(values({}, {28, 28, 1}, 4'500).at("augment"), "pad_crop");
}

TEST(ImageRecipe, Photographs) {
  const auto plan = values({}, {500, 375, 3}, 250);
  EXPECT_EQ(plan.at("model"), "resnet18");
  EXPECT_EQ(plan.at("image_size"), "224");
  EXPECT_EQ(plan.at("augment"), "resized_crop_flip");
  EXPECT_EQ(plan.at("lr"), "0.1");
  ImageRecipeRequest tuning;
  tuning.weights = true;
  EXPECT_EQ(values(tuning, {500, 375, 3}, 250).at("lr"), "0.01");  // smaller steps from given weights
}

TEST(ImageRecipe, AdaptiveOptimizersHaveRatesOfTheirOwn) {
  ImageRecipeRequest request;
  request.optimizer = "adamw";
  const auto plan = values(request, {32, 32, 3}, 45'000);
  EXPECT_EQ(plan.at("optimizer"), "adamw");
  EXPECT_EQ(plan.at("lr"), "0.001");
  EXPECT_EQ(plan.at("schedule"), "cosine");
}

TEST(ImageClassification, NamesBecomePolicies) {
  const ImagePreprocessing small = preprocessing(32, 3), large = preprocessing(224, 3);
  EXPECT_EQ(small.resize, 32);
  EXPECT_EQ(large.resize, 256);  // torchvision's margin
  const augment::ImagePolicy padded = training_policy("pad_crop_flip", small);
  EXPECT_EQ(padded.crop, augment::Crop::kPad);
  EXPECT_EQ(padded.pad, 2);
  EXPECT_TRUE(padded.flip);
  EXPECT_EQ(training_policy("resized_crop", large).crop, augment::Crop::kRandomResized);
  EXPECT_FALSE(training_policy("resized_crop", large).flip);
  const augment::ImagePolicy seen = evaluation_policy(large);
  EXPECT_EQ(seen.crop, augment::Crop::kResizeCentre);
  EXPECT_FALSE(seen.flip);
}

TEST(ImageAugment, ACropMovesAsThePlanSays) {
  EXPECT_EQ(values({}, {32, 32, 3}, 45'000).at("crop_pad"), "2");
  EXPECT_EQ(values({}, {8, 8, 3}, 45'000).at("crop_pad"), "1");
  const auto pad = [](const core::TaskValues& given) {
    augment::ImagePolicy policy = training_policy("pad_crop_flip", preprocessing(32, 3));
    apply_augment(with(given), policy);
    return policy.pad;
  };
  EXPECT_EQ(pad({{"crop_pad", "3"}}), 3);
  EXPECT_EQ(pad({{"crop_pad", "31"}}), 31);
  EXPECT_THROW((void)pad({{"crop_pad", "32"}}), ConfigError);
}

TEST(ImageAugment, EveryOptionHasADefaultAndNoneAugmentsByIt) {
  const std::vector<core::PlanRow> rows = image_recipe({}, {32, 32, 3}, 45'000);
  const core::TaskValues defaults = stoker::testing::default_values(image_options().options(), rows);
  const ImageOptions planned = image_options().parse(defaults);  // throws where one is missing
  for (const ImageOptions& each : {planned, ImageOptions()}) {
    augment::ImagePolicy policy = training_policy("pad_crop_flip", preprocessing(32, 3));
    apply_augment(each, policy);
    EXPECT_TRUE(policy.flip);
    EXPECT_FALSE(policy.alternate);
    EXPECT_TRUE(policy.operations.empty());
    EXPECT_FALSE(mix_of(each, 97).on());
  }
}

TEST(ImageAugment, OptionsBecomeOperationsInTheirOrder) {
  const ImageOptions own = with({{"flip", "alternating"},
                                 {"rotate", "15"},
                                 {"translate", "0.1"},
                                 {"zoom", "0.2"},
                                 {"shear", "5"},
                                 {"jitter", "0.4"},
                                 {"hue", "0.1"},
                                 {"grey", "0.2"},
                                 {"blur", "0.5"},
                                 {"erase", "0.25"},
                                 {"mixup", "0.2"},
                                 {"cutmix", "1"}});
  augment::ImagePolicy policy = training_policy("pad_crop", preprocessing(224, 3));
  apply_augment(own, policy);
  augment::check(policy);
  EXPECT_TRUE(policy.flip && policy.alternate);
  ASSERT_EQ(policy.operations.size(), 5u);
  const auto& affine = std::get<augment::Affine>(policy.operations[0]);
  EXPECT_EQ(affine.degrees, 15);
  EXPECT_EQ(affine.translate_y, 0.1);
  EXPECT_EQ(affine.min_scale, 0.8);
  EXPECT_EQ(affine.shear_x, 5);
  const auto& jitter = std::get<augment::ColourJitter>(policy.operations[1]);
  EXPECT_EQ(jitter.saturation, 0.4);
  EXPECT_EQ(jitter.hue, 0.1);
  EXPECT_EQ(std::get<augment::Grey>(policy.operations[2]).probability, 0.2);
  EXPECT_EQ(std::get<augment::Blur>(policy.operations[3]).kernel, 23);
  EXPECT_EQ(std::get<augment::Erase>(policy.operations[4]).probability, 0.25);
  const augment::Mix mix = mix_of(own, 96);
  EXPECT_EQ(mix.mixup, 0.2);
  EXPECT_EQ(mix.cutmix, 1);
  EXPECT_EQ(mix.block, 16);
  EXPECT_THROW((void)mix_of(own, 257), ConfigError);
  augment::ImagePolicy still = training_policy("pad_crop_flip", preprocessing(32, 3));
  apply_augment(with({{"flip", "off"}}), still);
  EXPECT_FALSE(still.flip);
}

}  // namespace
}  // namespace stoker::tasks
