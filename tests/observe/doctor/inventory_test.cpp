// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/doctor/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "stoker/base/fmt.h"

namespace stoker::observe::doctor {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

Facts script() {
  Facts facts;
  facts.source = Source::kScript;
  facts.words = {{"switch.anomaly", "true"},
                 {"switch.profiler", "false"},
                 {"switch.deterministic", "false"},
                 {"switch.fill_uninitialized", "true"},
                 {"switch.cudnn_benchmark", "false"},
                 {"switch.matmul_precision", "highest"},
                 {"switch.cuda", "false"},
                 {"switch.optimizer.name", "AdamW"},
                 {"switch.optimizer.fused", "false"},
                 {"switch.gc", "true"},
                 {"switch.environment.CUDA_LAUNCH_BLOCKING", "1"}};
  facts.figures["loader.workers"] = {2, "script"};
  return facts;
}

const Switch* find(const std::vector<Switch>& rows, std::string_view name) {
  const auto found = std::ranges::find(rows, name, &Switch::name);
  return found == rows.end() ? nullptr : &*found;
}

TEST(Inventory, SaysWhatIsSetWrong) {
  const auto rows = inventory(script());
  ASSERT_NE(find(rows, "anomaly detection"), nullptr);
  EXPECT_EQ(find(rows, "anomaly detection")->value, "on");
  EXPECT_EQ(find(rows, "anomaly detection")->wanted, "off");
  EXPECT_EQ(find(rows, "anomaly detection")->rule, "debug_apis_on");
  EXPECT_EQ(find(rows, "profiler")->wanted, "");
  EXPECT_EQ(find(rows, "fused AdamW")->wanted, "on");
  EXPECT_EQ(find(rows, "persistent_workers")->wanted, "on");
  EXPECT_EQ(find(rows, "CUDA_LAUNCH_BLOCKING")->wanted, "unset");
}

TEST(Inventory, LeavesOutWhatHasNoEffectHere) {
  const auto rows = inventory(script());
  EXPECT_EQ(find(rows, "cudnn.benchmark"), nullptr);  // on a CPU
  EXPECT_EQ(find(rows, "float32 matmul precision"), nullptr);
  EXPECT_EQ(find(rows, "fill of new tensors"), nullptr);  // only with deterministic algorithms
  Facts facts = script();
  facts.words["switch.cuda"] = "NVIDIA H200";
  facts.words["switch.deterministic"] = "true";
  const auto more = inventory(facts);
  EXPECT_EQ(find(more, "cudnn.benchmark")->wanted, "on");
  EXPECT_EQ(find(more, "float32 matmul precision")->wanted, "high (TF32)");
  EXPECT_EQ(find(more, "fill of new tensors")->wanted, "off");
}

TEST(Inventory, OfARunReadsThePlan) {
  Facts facts;
  facts.words = {{"plan.anomaly", "on"}, {"plan.device", "cuda:0"}, {"plan.tf32", "on"}, {"plan.deterministic", "on"}};
  const auto rows = inventory(facts);
  EXPECT_EQ(find(rows, "anomaly")->wanted, "off");
  EXPECT_EQ(find(rows, "tf32")->wanted, "");
  EXPECT_EQ(find(rows, "deterministic")->wanted, "off");
  EXPECT_EQ(find(rows, "deterministic")->option, "");  // somebody may want the same bits
  facts.words = {
      {"plan.device", "cuda:0"}, {"plan.tf32", "off"}, {"plan.cudnn_benchmark", "off"}, {"plan.deterministic", "off"}};
  EXPECT_EQ(find(inventory(facts), "tf32")->option, "");
  facts.words["origin.plan.tf32"] = facts.words["origin.plan.cudnn_benchmark"] = "config";
  EXPECT_EQ(find(inventory(facts), "tf32")->option, "tf32=on");
  EXPECT_EQ(find(inventory(facts), "cudnn_benchmark")->option, "cudnn_benchmark=on");
  facts.words["plan.deterministic"] = "on";
  EXPECT_EQ(find(inventory(facts), "cudnn_benchmark")->option, "");
  facts.source = Source::kTrace;
  EXPECT_THAT(inventory(facts), IsEmpty());
}

// What a default or a timed trial chose needs no other trial.
TEST(Inventory, OfARunTriesWhatSomebodySet) {
  Facts facts;
  facts.words = {{"plan.device", "cpu"},       {"plan.precision", "fp32"}, {"plan.layout", "channels_last"},
                 {"plan.intra_op", "1"},       {"plan.batch", "64"},       {"plan.microbatch", "4"},
                 {"plan.recompute", "every:2"}};
  const auto options = [&](const char* origin) {
    for (const char* key : {"precision", "layout", "intra_op", "microbatch", "recompute"}) {
      facts.words[fmt::format("origin.plan.{}", key)] = origin;
    }
    std::vector<std::string> found;
    for (const Switch& each : inventory(facts)) {
      if (!each.option.empty()) {
        found.push_back(each.option);
      }
    }
    return found;
  };
  for (const char* origin : {"command line", "config"}) {
    EXPECT_THAT(options(origin),
                ElementsAre("recompute=none", "precision=bf16", "layout=contiguous", "intra_op=auto", "microbatch=64"));
  }
  facts.words["plan.precision"] = "fp16";
  EXPECT_THAT(options("config"), Contains("precision=bf16"));
  facts.words["plan.precision"] = "bf16";
  EXPECT_THAT(options("config"), Contains("precision=fp32"));
  facts.words["plan.half_weights"] = "on";  // which fp32 contradicts
  EXPECT_THAT(options("config"), Not(Contains("precision=fp32")));
  EXPECT_THAT(options("measured"), IsEmpty());
  EXPECT_THAT(options("default"), IsEmpty());
}

}  // namespace
}  // namespace stoker::observe::doctor
