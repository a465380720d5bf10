// SPDX-License-Identifier: Apache-2.0
// The guard of process-wide switches restores every one of them, including the generator, also when guards nest.
#include "stoker/precision/process_switches.h"

#include <ATen/Parallel.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include <map>
#include <string>

namespace stoker::precision {
namespace {

using torch::autograd::AnomalyMode;

constexpr at::Float32Op kOps[] = {at::Float32Op::MATMUL, at::Float32Op::CONV, at::Float32Op::RNN};

std::map<std::string, int> switches() {
  const at::Context& context = at::globalContext();
  std::map<std::string, int> all = {{"threads", at::get_num_threads()},
                                    {"benchmark", context.benchmarkCuDNN()},
                                    {"deterministic cudnn", context.deterministicCuDNN()},
                                    {"deterministic", context.deterministicAlgorithms()},
                                    {"warn only", context.deterministicAlgorithmsWarnOnly()},
                                    {"fill", context.deterministicFillUninitializedMemory()},
                                    {"anomaly", AnomalyMode::is_enabled()},
                                    {"anomaly nan", AnomalyMode::should_check_nan()}};
  for (const at::Float32Op op : kOps) {
    all["float32 " + std::to_string(static_cast<int>(op))] =
        static_cast<int>(context.float32Precision(at::Float32Backend::CUDA, op));
  }
  return all;
}

// Sets each switch to another value than it has.
void flip_all() {
  at::Context& context = at::globalContext();
  at::set_num_threads(at::get_num_threads() + 1);
  context.setBenchmarkCuDNN(!context.benchmarkCuDNN());
  context.setDeterministicCuDNN(!context.deterministicCuDNN());
  context.setDeterministicAlgorithms(!context.deterministicAlgorithms(), !context.deterministicAlgorithmsWarnOnly());
  context.setDeterministicFillUninitializedMemory(!context.deterministicFillUninitializedMemory());
  AnomalyMode::set_enabled(!AnomalyMode::is_enabled(), !AnomalyMode::should_check_nan());
  for (const at::Float32Op op : kOps) {
    const bool ieee = context.float32Precision(at::Float32Backend::CUDA, op) == at::Float32Precision::IEEE;
    context.setFloat32Precision(at::Float32Backend::CUDA, op,
                                ieee ? at::Float32Precision::TF32 : at::Float32Precision::IEEE);
  }
}

void expect_all_differ(const std::map<std::string, int>& before) {
  for (const auto& [name, value] : switches()) {
    EXPECT_NE(value, before.at(name)) << name << " was not changed, so the test proves nothing about it";
  }
}

TEST(ProcessSwitches, RestoresEachSwitchAlsoIfGuardsNest) {
  const auto before = switches();
  at::Tensor next;
  {
    const ProcessSwitches outer;
    next = at::rand({4});  // what a program would draw
    flip_all();
    expect_all_differ(before);
    const auto flipped = switches();
    {
      const ProcessSwitches inner;
      flip_all();
      (void)at::rand({100});
      expect_all_differ(flipped);
    }
    EXPECT_EQ(switches(), flipped);
  }
  EXPECT_EQ(switches(), before);
  EXPECT_TRUE(at::rand({4}).equal(next)) << "the generator does not continue where it was";
}

}  // namespace
}  // namespace stoker::precision
