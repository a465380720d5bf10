// SPDX-License-Identifier: Apache-2.0
// What the settings of reading images mean, by default and in plans and cards from before there were any.
#include "stoker/tasks/image/reading.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/tasks/image/preprocessing.h"
#include "stoker/tasks/image/recipe.h"
#include "stoker/tasks/image/task.h"

namespace stoker::tasks {
namespace {

TEST(ImageReading, DefaultsAreWhatAnOlderPlanMeant) {
  core::TaskValues own;
  RecipeRows rows;
  add_reading_rows(rows);
  for (const core::PlanRow& row : rows.rows) {
    own[row.key] = row.value;
  }
  EXPECT_EQ(own.size(), reading_settings().size());
  for (const core::TaskSetting& setting : reading_settings()) {
    EXPECT_NO_THROW(setting.check(own.at(setting.key))) << setting.key;
  }
  for (const core::TaskValues& each : {own, core::TaskValues{}}) {
    EXPECT_EQ(interpolation_of(each), augment::Interpolation::kBilinear);
    EXPECT_TRUE(limits_of(each).strict);
    EXPECT_FALSE(decodes_fast(each));
  }
}

TEST(ImageReading, MeansWhatItSays) {
  EXPECT_EQ(interpolation_of({{"interpolation", "bicubic"}}), augment::Interpolation::kBicubic);
  EXPECT_THROW((void)interpolation_of({{"interpolation", "nearest"}}), ConfigError);
  EXPECT_FALSE(limits_of({{"strict", "false"}}).strict);
  EXPECT_TRUE(decodes_fast({{"decode", "fast"}}));
  EXPECT_TRUE(decodes_fast({{"decode", "fast"}, {"cache", "0"}}));
  EXPECT_THROW((void)decodes_fast({{"decode", "fast"}, {"cache", "10"}}), ConfigError);
}

TEST(ImageReading, FastDecodingKeepsNoImages) {
  RecipeQuestion question;
  question.memory = 8'000'000'000;
  question.decodes_fast = true;
  int seen = 0;
  for (const core::PlanRow& row : recipe(question, {32, 32, 3}, 50'000)) {
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
  card["preprocessing"].erase("interpolation");
  EXPECT_EQ(evaluation_policy(image_card(card).pixels).interpolation, augment::Interpolation::kBilinear);
  card["preprocessing"]["interpolation"] = "lanczos";
  EXPECT_THROW((void)image_card(card), CheckpointError);
}

}  // namespace
}  // namespace stoker::tasks
