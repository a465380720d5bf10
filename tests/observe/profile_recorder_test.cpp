// SPDX-License-Identifier: Apache-2.0
// Real steps under Kineto on the CPU: what is recorded, the trace that our own reader reads back, and that nothing is
// left afterwards.
#include <ATen/ops/conv2d.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "stoker/base/error.h"
#include "stoker/device/host_allocator.h"
#include "stoker/observe/profile/ceilings.h"
#include "stoker/observe/profile/profile_table.h"
#include "stoker/observe/profile/recorder.h"
#include "stoker/observe/trace/read_trace.h"
#include "support/temp_folder.h"

namespace stoker::observe::profile {
namespace {

using stoker::testing::TempFolder;

constexpr int kSteps = 3;

// A convolution of [2,3,8,8] with 4 filters of 3 x 3 keeping the size, a product [2,256] x [256,10], and their
// backward.
void step() {
  static const at::Tensor images = at::ones({2, 3, 8, 8}), filters = at::ones({4, 3, 3, 3}).requires_grad_(true),
                          weights = at::ones({256, 10}).requires_grad_(true);
  RECORD_USER_SCOPE("step.compute");
  const at::Tensor features = at::conv2d(images, filters, {}, {1, 1}, {1, 1});
  const at::Tensor scores = at::mm(features.view({2, 256}), weights);
  torch::autograd::backward({at::masked_fill(scores, scores.gt(1e9), 0).sum()}, {});
  filters.mutable_grad() = at::Tensor();
  weights.mutable_grad() = at::Tensor();
}

constexpr double kConvolution = 2.0 * 2 * 4 * 8 * 8 * 3 * 3 * 3, kProduct = 2.0 * 2 * 256 * 10;

Recorded record(const std::filesystem::path& file) {
  Recorder recorder(c10::kCPU);
  step();
  recorder.start();
  for (int i = 0; i < kSteps; ++i) {
    recorder.begin_step(12 + i);
    step();
    recorder.end_step();
  }
  return recorder.finish(file);
}

TEST(ProfileRecorder, RecordsOperatorsRangesAndMemory) {
  const TempFolder folder;
  const Recorded recorded = record(folder / "a.json.gz");
  EXPECT_EQ(recorded.steps_ns.size(), static_cast<std::size_t>(kSteps));
  const auto count = [&](const std::string& name) { return std::ranges::count(recorded.calls, name, &Call::name); };
  EXPECT_EQ(count("ProfilerStep#12"), 1);
  EXPECT_EQ(count("step.compute"), kSteps);
  EXPECT_EQ(count("aten::conv2d"), kSteps);
  const auto convolution = std::ranges::find(recorded.calls, "aten::convolution", &Call::name);
  ASSERT_NE(convolution, recorded.calls.end());
  EXPECT_EQ(convolution->shapes.at(1), (std::vector<std::int64_t>{4, 3, 3, 3}));
  EXPECT_EQ(convolution->numbers.at(4), (std::vector<std::int64_t>{1, 1}));
  EXPECT_TRUE(std::ranges::any_of(recorded.allocations, [](const Allocation& each) { return each.bytes == 2048; }));
  EXPECT_FALSE(std::filesystem::exists(folder / "a.json.gz.json"));
}

// Forward and backward: the images need no gradient, the features do.
TEST(ProfileRecorder, ArithmeticOfWholeSteps) {
  const TempFolder folder;
  const ProfileTable table = profile_table(record(folder / "a.json.gz"), /*gpu=*/false);
  EXPECT_DOUBLE_EQ(table.flops, kSteps * (2 * kConvolution + 3 * kProduct));
  EXPECT_EQ(product_types(table), std::vector<std::string>{"float"});
  EXPECT_TRUE(std::ranges::any_of(table.operators, [](const OperatorRow& row) { return row.indexing; }));
  EXPECT_LE(table.exposed_seconds, table.seconds);
  EXPECT_GT(table.exposed_seconds, 0);
}

TEST(ProfileRecorder, OurOwnReaderReadsTheTrace) {
  const TempFolder folder;
  const Recorded recorded = record(folder / "a.pt.trace.json.gz");
  const auto traces = trace::read_traces(folder / "a.pt.trace.json.gz");
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_FALSE(traces[0].damage.any());
  std::int64_t operators = 0, steps = 0;
  for (const trace::Event& event : traces[0].events) {
    operators += event.kind == trace::Kind::kOperator ? 1 : 0;
    steps += traces[0].name(event).starts_with("ProfilerStep#") ? 1 : 0;
  }
  EXPECT_EQ(steps, kSteps);
  EXPECT_EQ(operators, std::ranges::count(recorded.calls, false, &Call::range));
}

TEST(ProfileRecorder, NothingIsLeftAndItCanBeginAgain) {
  const TempFolder folder;
  const Recorded first = record(folder / "a.json.gz");
  EXPECT_FALSE(at::hasCallbacks());
  const Recorded second = record(folder / "b.json.gz");
  EXPECT_EQ(first.calls.size(), second.calls.size());
  {
    Recorder dropped(c10::kCPU);
    dropped.start();
    dropped.begin_step(1);
    EXPECT_TRUE(at::hasCallbacks());
  }
  EXPECT_FALSE(at::hasCallbacks());
}

TEST(ProfileRecorder, TwoAtATimeAreRefused) {
  Recorder recorder(c10::kCPU);
  recorder.start();
  EXPECT_THROW(Recorder(c10::kCPU), ConfigError);
}

TEST(ProfileRecorder, AFileThatCannotBeWrittenIsAnError) {
  const TempFolder folder;
  EXPECT_THROW((void)record(folder / "missing" / "a.json.gz"), IoError);
  EXPECT_FALSE(at::hasCallbacks());
}

// Kineto says nothing on a full disk; the trace would end in the middle.
TEST(ProfileRecorder, ADiskThatIsFullIsAnErrorAndLeavesNoFile) {
  const TempFolder folder;
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  for (const rlim_t bytes : {rlim_t{0}, rlim_t{100}, rlim_t{10'000}}) {
    const rlimit small{bytes, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    EXPECT_THROW((void)record(folder / "a.json.gz"), IoError) << bytes;
    ::setrlimit(RLIMIT_FSIZE, &before);
    for (const auto& left : std::filesystem::directory_iterator(folder.path())) {
      ADD_FAILURE() << left.path() << " is left with " << bytes;
    }
  }
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(record(folder / "a.json.gz").calls.empty());
}

TEST(ProfileCeilings, AreMeasured) {
  const Ceilings ceilings = measure_ceilings(c10::kCPU, {"float", "bfloat16"});
  EXPECT_GT(ceilings.product("float"), 1e8);  // 0.1 GFLOP/s: any machine
  EXPECT_GT(ceilings.product("bfloat16"), 0);
  EXPECT_EQ(ceilings.product("half"), -1);
  EXPECT_GT(ceilings.bytes_per_second, 1e8);
}

// A run at its limit gets what fits: the smallest products, and no copy that a cache would hold.
TEST(ProfileCeilings, TakeAShareOfWhatIsFreeAndGiveItBack) {
  device::install_host_allocator();
  (void)measure_ceilings(c10::kCPU, {"float"});  // what kernels keep for themselves
  device::release_host_memory();
  constexpr std::int64_t kFree = 32 << 20;
  const std::int64_t held = device::host_allocated(), reserved = device::host_reserved();
  const std::int64_t before = device::set_host_cap(held + kFree);
  device::reset_host_peak();
  const Ceilings ceilings = measure_ceilings(c10::kCPU, {"float", "bfloat16"});
  const std::int64_t peak = device::host_tensors().peak;
  device::set_host_cap(held + (1 << 20));
  const Ceilings none = measure_ceilings(c10::kCPU, {"float"});
  device::set_host_cap(before);
  EXPECT_GT(ceilings.product("float"), 1e8);
  EXPECT_GT(ceilings.product("bfloat16"), 0);
  EXPECT_EQ(ceilings.bytes_per_second, -1);
  EXPECT_LE(peak - held, kFree / 4);
  EXPECT_LE(device::host_reserved(), reserved);
  EXPECT_TRUE(none.products.empty());
}

}  // namespace
}  // namespace stoker::observe::profile
