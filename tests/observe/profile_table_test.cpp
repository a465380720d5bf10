// SPDX-License-Identifier: Apache-2.0
// The table of operators, from calls whose times add up by hand.
#include "stoker/observe/profile/profile_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "stoker/observe/profile/call_tree.h"

namespace stoker::observe::profile {
namespace {

constexpr std::int64_t kMs = 1'000'000;

Call call(std::string name, std::int64_t begin, std::int64_t end, std::uint64_t thread = 1) {
  Call made{.name = std::move(name), .begin = begin * kMs, .end = end * kMs, .thread = thread};
  made.range = !made.name.starts_with("aten::") && !made.name.ends_with("Backward0");
  return made;
}

Call product(std::int64_t begin, std::int64_t end, std::uint64_t id = 0) {
  Call made = call("aten::mm", begin, end);
  made.shapes = {{100, 100}, {100, 100}};
  made.types = {"float", "float"};
  made.id = id;
  return made;
}

const OperatorRow& row(const ProfileTable& table, const std::string& name) {
  const auto found = std::ranges::find(table.operators, name, &OperatorRow::name);
  if (found == table.operators.end()) {
    throw std::runtime_error("no row " + name);
  }
  return *found;
}

Recorded one_step(std::vector<Call> calls, std::int64_t ms = 100) {
  calls.insert(calls.begin(), call("ProfilerStep#7", 0, ms));
  Recorded recorded{.calls = std::move(calls), .thread = 1};
  recorded.steps_ns = {ms * kMs};
  return recorded;
}

TEST(ProfileTable, OwnTimeIsWithoutWhatIsCalled) {
  const auto table = profile_table(one_step({call("step.forward", 10, 60), call("aten::outer", 10, 50),
                                             call("aten::inner", 20, 30), call("aten::inner", 35, 40)}),
                                   /*gpu=*/false);
  EXPECT_DOUBLE_EQ(row(table, "aten::outer").exposed_seconds, 0.025);
  EXPECT_DOUBLE_EQ(row(table, "aten::inner").exposed_seconds, 0.015);
  EXPECT_EQ(row(table, "aten::inner").calls, 2);
  EXPECT_DOUBLE_EQ(table.exposed_seconds, 0.040);
  EXPECT_EQ(table.operators.front().name, "aten::outer");
  ASSERT_EQ(table.phases.size(), 2U);
  EXPECT_DOUBLE_EQ(table.phases[0].own_seconds, 0.050);  // of the step, outside of the range
  EXPECT_DOUBLE_EQ(table.phases[1].own_seconds, 0.050);
}

TEST(ProfileTable, AnotherThreadIsNotExposed) {
  const auto table = profile_table(one_step({call("aten::work", 0, 40, /*thread=*/2)}), /*gpu=*/false);
  EXPECT_EQ(row(table, "aten::work").exposed_seconds, 0);
  EXPECT_DOUBLE_EQ(row(table, "aten::work").host_seconds, 0.040);
}

// Made-up nests of calls: own times and the time outside add up to the step, whatever the nest.
TEST(ProfileTable, TimesAddUp) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<Call> calls;
    const auto fill = [&](const auto& self, std::int64_t begin, std::int64_t end, int depth) -> void {
      for (std::int64_t at = begin; depth < 4 && at < end;) {
        const std::int64_t from = at + static_cast<std::int64_t>(random() % 3);
        const std::int64_t to = from + 1 + static_cast<std::int64_t>(random() % 20);
        if (to > end) {
          break;
        }
        calls.push_back(call("aten::op" + std::to_string(random() % 5), from, to));
        self(self, from, to, depth + 1);
        at = to;
      }
    };
    fill(fill, 0, 100, 0);
    std::int64_t outside = 0;
    for (std::int64_t ms = 0; ms < 100; ++ms) {
      outside +=
          std::ranges::none_of(calls, [&](const Call& each) { return each.begin <= ms * kMs && ms * kMs < each.end; });
    }
    std::ranges::shuffle(calls, random);
    const auto table = profile_table(one_step(calls), /*gpu=*/false);
    EXPECT_NEAR(table.exposed_seconds, 1e-3 * static_cast<double>(100 - outside), 1e-12);
  }
}

TEST(ProfileTable, ArithmeticGoesToTheCallThatDoesIt) {
  Call convolution = call("aten::convolution", 0, 50);
  convolution.shapes = {{1, 1, 10, 10}, {1, 1, 1, 1}};
  convolution.types = {"float", "float"};
  const auto table = profile_table(
      one_step({call("aten::conv2d", 0, 51), convolution, call("aten::mkldnn_convolution", 1, 49), product(60, 70)}),
      /*gpu=*/false);
  EXPECT_EQ(row(table, "aten::mkldnn_convolution").flops, 2 * 100);
  EXPECT_EQ(row(table, "aten::convolution").flops, 0);
  EXPECT_EQ(table.flops, 2 * 100 + 2e6);
}

TEST(ProfileTable, ArithmeticCountsOnce) {
  Call outer = product(0, 50);
  outer.name = "aten::bmm";
  const auto table = profile_table(one_step({outer, product(10, 20)}), /*gpu=*/false);
  EXPECT_EQ(table.flops, 2e6);
  EXPECT_EQ(row(table, "aten::mm").flops, 2e6);
}

TEST(ProfileTable, RatesAgainstCeilings) {
  Call copy = call("aten::copy_", 50, 60);
  copy.shapes = {{1000, 1000}, {1000, 1000}};
  copy.types = {"float", "float"};
  auto table = profile_table(one_step({product(0, 10), copy}), /*gpu=*/false);
  EXPECT_EQ(product_types(table), std::vector<std::string>{"float"});
  compare(table, {.products = {{"float", 4e8}}, .bytes_per_second = 1.6e9});
  EXPECT_DOUBLE_EQ(row(table, "aten::mm").of_ceiling, 0.5);     // 2e8 of 4e8 a second
  EXPECT_DOUBLE_EQ(row(table, "aten::copy_").of_ceiling, 0.5);  // 8e8 of 1.6e9
  EXPECT_DOUBLE_EQ(table.mfu, 0.05);                            // 5 ms of 100 would do
}

TEST(ProfileTable, WithoutACeilingRatesAreUnknown) {
  auto table = profile_table(one_step({product(0, 10)}), /*gpu=*/false);
  compare(table, {});
  EXPECT_EQ(table.mfu, -1);
  EXPECT_EQ(row(table, "aten::mm").of_ceiling, -1);
}

// On a GPU: what overlaps counts for the work that began first.
TEST(ProfileTable, ExposedOnADevice) {
  Recorded recorded = one_step({product(0, 1, /*id=*/5), call("aten::relu", 1, 2)});
  recorded.calls.back().id = 6;
  recorded.work = {{"gemm", 10 * kMs, 30 * kMs, 7, 5},
                   {"relu", 20 * kMs, 40 * kMs, 8, 6},
                   {"inside", 22 * kMs, 25 * kMs, 9, 6},
                   {"of nobody", 90 * kMs, 95 * kMs, 7, 0}};
  const auto table = profile_table(recorded, /*gpu=*/true);
  EXPECT_TRUE(table.on_device);
  EXPECT_DOUBLE_EQ(row(table, "aten::mm").exposed_seconds, 0.020);
  EXPECT_DOUBLE_EQ(row(table, "aten::relu").exposed_seconds, 0.010);
  ASSERT_EQ(table.kernels.size(), 4U);
  EXPECT_DOUBLE_EQ(table.kernels[0].seconds, 0.020);
}

TEST(ProfileTable, WithoutRecordsOfTheDeviceTimesAreTheHosts) {
  const auto table = profile_table(one_step({product(0, 10)}), /*gpu=*/true);
  EXPECT_FALSE(table.on_device);
  EXPECT_DOUBLE_EQ(row(table, "aten::mm").exposed_seconds, 0.010);
}

TEST(ProfileTable, MemoryBelongsToTheOperatorThatWantedIt) {
  Recorded recorded =
      one_step({product(0, 10), call("aten::empty", 2, 3), call("aten::resize_", 4, 7), call("step.forward", 20, 40)});
  recorded.allocations = {{2 * kMs, 1000, 1, true},    // by empty, for mm
                          {5 * kMs, 500, 1, true},     // by resize_, for mm
                          {6 * kMs, -500, 1, true},    // freed
                          {7 * kMs, 64, 2, true},      // another thread's
                          {8 * kMs, 4096, 1, false}};  // of another device
  const auto table = profile_table(recorded, /*gpu=*/false);
  EXPECT_EQ(row(table, "aten::mm").allocated_bytes, 1500);
  EXPECT_EQ(row(table, "aten::empty").allocated_bytes, 0);
}

TEST(ProfileTable, NothingRecordedIsAnEmptyTable) {
  auto table = profile_table({}, /*gpu=*/false);
  compare(table, {});
  EXPECT_TRUE(table.operators.empty());
  EXPECT_EQ(table.mfu, -1);
}

TEST(ProfileTable, StepsThatWereNotFinishedAreCut) {
  Recorded recorded = one_step({product(10, 20)});
  recorded.calls.push_back(call("ProfilerStep#8", 100, 130));
  recorded.calls.push_back(product(110, 120));
  recorded.steps_ns.push_back(30 * kMs);
  recorded.work = {{"gemm", 99 * kMs, 101 * kMs, 7, 5}, {"gemm", 101 * kMs, 102 * kMs, 7, 6}};
  recorded.allocations = {{15 * kMs, 64, 1, true}, {115 * kMs, 64, 1, true}};
  keep_steps(recorded, 2);
  EXPECT_EQ(recorded.calls.size(), 4U);
  keep_steps(recorded, 1);
  EXPECT_EQ(recorded.calls.size(), 2U);
  EXPECT_EQ(recorded.work.size(), 1U);
  EXPECT_EQ(recorded.allocations.size(), 1U);
  EXPECT_EQ(profile_table(recorded, /*gpu=*/false).steps, 1);
}

TEST(CallTree, TheInnermostCall) {
  const std::vector<Call> calls = {call("aten::a", 0, 100), call("aten::b", 10, 20), call("aten::c", 5, 9, 2)};
  const CallTree tree(calls);
  EXPECT_EQ(tree.innermost(1, 15 * kMs), 1U);
  EXPECT_EQ(tree.innermost(1, 25 * kMs), 0U);
  EXPECT_EQ(tree.innermost(1, 100 * kMs), CallTree::kNone);
  EXPECT_EQ(tree.innermost(2, 7 * kMs), 2U);
  EXPECT_EQ(tree.innermost(2, 1 * kMs), CallTree::kNone);
  EXPECT_EQ(tree.innermost(3, 7 * kMs), CallTree::kNone);
}

}  // namespace
}  // namespace stoker::observe::profile
