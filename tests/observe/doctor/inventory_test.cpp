// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/doctor/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace stoker::observe::doctor {
namespace {

using ::testing::IsEmpty;

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
  facts.source = Source::kTrace;
  EXPECT_THAT(inventory(facts), IsEmpty());
}

}  // namespace
}  // namespace stoker::observe::doctor
