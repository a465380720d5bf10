// SPDX-License-Identifier: Apache-2.0
// Kineto with CUPTI: kernels are recorded and belong to the operators that launched them. Prints a skip message without
// a GPU.
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "stoker/observe/profile/profile_table.h"
#include "stoker/observe/profile/recorder.h"
#include "stoker/observe/trace/read_trace.h"
#include "support/gpu.h"
#include "support/temp_folder.h"

namespace stoker::observe::profile {
namespace {

TEST(GpuProfile, KernelsBelongToOperators) {
  STOKER_NEEDS_GPU();
  const stoker::testing::TempFolder folder;
  const c10::Device device(c10::kCUDA, 0);
  const at::Tensor matrix = at::ones({512, 512}, at::TensorOptions(device));
  (void)at::mm(matrix, matrix);
  Recorder recorder(device);
  (void)at::mm(matrix, matrix);
  recorder.start();
  for (int i = 0; i < 4; ++i) {
    recorder.begin_step(i + 1);
    (void)at::mm(matrix, matrix);
    recorder.end_step();
  }
  const Recorded recorded = recorder.finish(folder / "a.json.gz");
  EXPECT_GE(recorded.work.size(), 4U);
  ProfileTable table = profile_table(recorded, /*gpu=*/true);
  ASSERT_TRUE(table.on_device);
  const auto mm = std::ranges::find(table.operators, "aten::mm", &OperatorRow::name);
  ASSERT_NE(mm, table.operators.end());
  EXPECT_GT(mm->exposed_seconds, 0);
  EXPECT_DOUBLE_EQ(mm->flops, 4 * 2.0 * 512 * 512 * 512);
  double kernels = 0;
  for (const DeviceWork& work : recorded.work) {
    kernels += 1e-9 * static_cast<double>(work.end - work.begin);
  }
  EXPECT_NEAR(mm->exposed_seconds, kernels, 0.05 * kernels);  // nothing else ran
  compare(table, measure_ceilings(device, product_types(table)));
  EXPECT_GT(table.mfu, 0);
  const auto traces = trace::read_traces(folder / "a.json.gz");
  EXPECT_GE(std::ranges::count_if(traces.at(0).events, [](const trace::Event& event) { return event.on_device(); }), 4);
}

}  // namespace
}  // namespace stoker::observe::profile
