// SPDX-License-Identifier: Apache-2.0
// Options and plans: every number refuses nan, negatives, zero where it means nothing, and absurd values; every text
// refuses what it does not know, with the nearest name; and a plan is read back from its file unchanged.
#include "stoker/train/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/train/plan_options.h"

namespace stoker::train {
namespace {

using ::testing::HasSubstr;

std::string refusal(std::string_view key, std::string_view value) {
  Options options;
  try {
    options.set(key, value);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Options, EveryNumberRefusesNonsense) {
  for (const core::Option& each : plan_options().options()) {
    if (!std::holds_alternative<core::Whole>(each.type) && !std::holds_alternative<core::Real>(each.type) &&
        !std::holds_alternative<core::Duration>(each.type)) {
      continue;  // not a number
    }
    for (const char* nonsense :
         {"nan", "-nan", "inf", "-1", "1e400", "99999999999999999999", "", " 1", "1 ", "1,5", "0x10", "ten", "1.5.2"}) {
      EXPECT_THAT(refusal(each.key, nonsense), HasSubstr(each.key + " must be")) << each.key << "=" << nonsense;
    }
  }
  for (const char* positive : {"epochs", "batch", "microbatch", "intra_op", "lr", "lr_batch", "optimizer.eps"}) {
    EXPECT_THAT(refusal(positive, "0"), HasSubstr("must be")) << positive;
  }
}

TEST(Options, NamesTheNearestKeyAndValue) {
  EXPECT_THAT(refusal("bacth", "64"), HasSubstr("did you mean \"batch\"?"));
  EXPECT_THAT(refusal("weigth_decay", "64"), HasSubstr("did you mean \"weight_decay\"?"));
  EXPECT_THAT(refusal("optimizer", "adamv"), HasSubstr("did you mean optimizer=adam"));
  EXPECT_THAT(refusal("zzzzzzzzzzzz", "1"), HasSubstr("unknown option"));
  EXPECT_THAT(refusal("device", "gpu"), HasSubstr("cpu, cuda, cuda:N or cuda:all"));
  EXPECT_THAT(refusal("device", "cuda:x"), HasSubstr("cuda:N"));
  Options options;
  EXPECT_THROW(options.set_assignment("batch"), ConfigError);
  EXPECT_THROW(options.set_assignment("=3"), ConfigError);
}

// Someone who comes from another tool uses its names.
TEST(Options, KnowOtherToolsNames) {
  for (const auto& [theirs, ours] : std::map<std::string, std::string>{{"learning_rate", "lr"},
                                                                       {"num_workers", "threads"},
                                                                       {"wd", "weight_decay"},
                                                                       {"amp", "precision"},
                                                                       {"batch_size", "batch"}}) {
    EXPECT_THAT(refusal(theirs, "1"), HasSubstr("did you mean \"" + ours + "\"?")) << theirs;
  }
}

// If two options had the same other name, the hint would depend on their order.
TEST(Options, OtherNamesBelongToOneOption) {
  std::map<std::string, std::string> owner;
  for (const core::Option& each : plan_options().options()) {
    for (const std::string& name : each.also) {
      EXPECT_TRUE(owner.emplace(name, each.key).second) << name << " is " << each.key << " and " << owner[name];
      EXPECT_EQ(core::find_option(plan_options().options(), name), nullptr) << name << " is an option itself";
    }
  }
}

TEST(Options, TakesUnitsAndAuto) {
  Options options;
  options.set("time", "1.5h");
  Plan plan;
  set_value(plan, "time", options.find("time")->value);
  EXPECT_EQ(plan.time, 5400);
  options.set("batch", "32");
  options.set("batch", "auto");
  EXPECT_EQ(options.find("batch"), nullptr);
  EXPECT_TRUE(options.is_auto("batch"));
  EXPECT_FALSE(options.is_auto("microbatch"));
  options.set("batch", "8");
  EXPECT_FALSE(options.is_auto("batch"));
}

TEST(Options, TakeWhatTasksBring) {
  Options options(
      {{.key = "context", .type = core::Whole{1, 3}, .fallback = core::depends("it"), .help = "of one task"},
       {.key = "context", .type = core::Whole{7, 7}, .fallback = core::depends("it"), .help = "of another"}});
  options.set("context", "7");
  options.set("batch", "3");
  EXPECT_EQ(options.own_values(), (core::TaskValues{{"context", "7"}}));
  options.set("context", "3");  // one of the tasks allows it; the task that is chosen checks it again
  EXPECT_THROW(options.set("context", "8"), ConfigError);
  options.set("context", "auto");
  EXPECT_TRUE(options.own_values().empty());
  try {
    options.set("contex", "7");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean \"context\"?"));
  }
}

// Values that a default-constructed plan leaves empty or 0 must be set before the plan can be read back.
Plan valid_plan() {
  Plan plan;
  const std::map<std::string_view, std::string_view> values = {
      {"task", "x"},        {"model", "cnn"}, {"lr", "0.1"}, {"batch", "7"}, {"warmup", "0.30000000000000004"},
      {"lr_scale", "sqrt"}, {"tf32", "off"}};
  for (const auto& [key, value] : values) {
    set_value(plan, key, value);
  }
  for (const auto& [key, value] : std::map<std::string_view, std::string_view>{{"epochs", "3"},
                                                                               {"lr_batch", "64"},
                                                                               {"optimizer", "sgd"},
                                                                               {"tensorboard", "on"},
                                                                               {"optimizer.eps", "1e-8"},
                                                                               {"schedule", "cosine"},
                                                                               {"device", "cpu"},
                                                                               {"precision", "bf16"},
                                                                               {"microbatch", "7"},
                                                                               {"intra_op", "2"},
                                                                               {"layout", "channels_last"},
                                                                               {"tail", "keep"}}) {
    set_value(plan, key, value);
  }
  return plan;
}

TEST(Plan, SurvivesItsFile) {
  Plan plan = valid_plan();
  set_value(plan, "context", "7");
  plan.notes["context"] = {core::Origin::kConfig, "asked for"};
  plan.notes["lr"] = {core::Origin::kCommandLine, "asked for"};
  const std::string text = plan_to_json(plan);
  const Plan back = plan_from_json(text);
  EXPECT_EQ(plan_to_json(back), text);
  EXPECT_EQ(back.warmup, 0.30000000000000004);
  EXPECT_EQ(back.notes.at("lr").origin, core::Origin::kCommandLine);
  EXPECT_EQ(back.own, (core::TaskValues{{"context", "7"}}));
  EXPECT_EQ(back.notes.at("context").origin, core::Origin::kConfig);
}

TEST(Plan, OfAnOlderFormatNamesTheVersionThatReadsIt) {
  nlohmann::json older = nlohmann::json::parse(plan_to_json(valid_plan()));
  older["format"] = 1;
  try {
    (void)plan_from_json(older.dump());
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("Stoker 0.1 reads it"));
  }
}

TEST(Plan, RefusesAMissingValue) {
  nlohmann::json plan = nlohmann::json::parse(plan_to_json(valid_plan()));
  EXPECT_EQ(plan["plan"].erase("schedule_steps"), 1U);
  EXPECT_THROW((void)plan_from_json(plan.dump()), ConfigError);
}

TEST(Plan, RefusesForeignFiles) {
  EXPECT_THROW((void)plan_from_json("{"), ConfigError);
  EXPECT_THROW((void)plan_from_json("{}"), ConfigError);
  EXPECT_THROW((void)plan_from_json(R"({"format": 2, "plan": {}})"), ConfigError);
  EXPECT_THROW((void)plan_from_json(R"({"format": 3, "plan": {}})"), ConfigError);
}

}  // namespace
}  // namespace stoker::train
