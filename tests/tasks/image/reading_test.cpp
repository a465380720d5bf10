// SPDX-License-Identifier: Apache-2.0
// The options for reading images: their defaults, their meaning, and their values in cards.
#include "stoker/tasks/image/reading.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/tasks/image/card.h"
#include "stoker/tasks/image/preprocessing.h"
#include "stoker/tasks/image/recipe.h"

namespace stoker::tasks {
namespace {

ImageOptions with(const core::TaskValues& given) {
  ImageOptions options;
  image_options().overlay(options, given);
  return options;
}

// A checkpoint that is evaluated without its run has no plan, so the initial values must be the defaults.
TEST(ImageReading, InitialValuesAreTheDefaults) {
  const ImageOptions initial;
  for (const char* key : {"interpolation", "strict", "decode", "on_bad", "bad_budget", "retry_bad"}) {
    EXPECT_EQ(image_options().text(initial, key), *core::find_option(image_options().options(), key)->fallback.value)
        << key;
  }
  EXPECT_EQ(interpolation_of(initial), augment::Interpolation::kBilinear);
  EXPECT_TRUE(limits_of(initial).strict);
  EXPECT_FALSE(decodes_fast(initial));
}

TEST(ImageReading, MeansWhatItSays) {
  EXPECT_EQ(interpolation_of(with({{"interpolation", "bicubic"}})), augment::Interpolation::kBicubic);
  EXPECT_THROW((void)with({{"interpolation", "nearest"}}), ConfigError);
  EXPECT_FALSE(limits_of(with({{"strict", "false"}})).strict);
  EXPECT_TRUE(decodes_fast(with({{"decode", "fast"}})));
  EXPECT_TRUE(decodes_fast(with({{"decode", "fast"}, {"cache", "0"}})));
  EXPECT_THROW((void)decodes_fast(with({{"decode", "fast"}, {"cache", "10"}})), ConfigError);
}

TEST(ImageReading, FastDecodingKeepsNoImages) {
  ImageRecipeRequest request;
  request.memory = 8'000'000'000;
  request.decodes_fast = true;
  int seen = 0;
  for (const core::PlanRow& row : image_recipe(request, {32, 32, 3}, 50'000)) {
    if (row.key == "cache") {
      EXPECT_EQ(row.value, "0");
      ++seen;
    }
  }
  EXPECT_EQ(seen, 1);
}

TEST(ImageReading, EvaluationScalesAsTheCardSays) {
  nlohmann::json card = {{"classes", {"a", "b"}},
                         {"preprocessing",
                          {{"channels", 1},
                           {"image_size", 8},
                           {"resize", 9},
                           {"mean", {0.5}},
                           {"std", {0.5}},
                           {"interpolation", "bicubic"}}}};
  EXPECT_EQ(evaluation_policy(image_card(card).pixels).interpolation, augment::Interpolation::kBicubic);
  EXPECT_EQ(training_policy("resized_crop", image_card(card).pixels).interpolation, augment::Interpolation::kBicubic);
  card["preprocessing"]["interpolation"] = "lanczos";
  EXPECT_THROW((void)image_card(card), CheckpointError);
}

}  // namespace
}  // namespace stoker::tasks
