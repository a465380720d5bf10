// SPDX-License-Identifier: Apache-2.0
// The guard of process-wide switches restores all of them, including the generator, also when guards nest.
#include "stoker/precision/process_switches.h"

#include <ATen/Parallel.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include "stoker/precision/policy.h"

namespace stoker::precision {
namespace {

TEST(ProcessSwitches, PutsBackWhatWasSet) {
  const int threads = at::get_num_threads();
  const at::Context& context = at::globalContext();
  const auto convolutions = context.float32Precision(at::Float32Backend::CUDA, at::Float32Op::CONV);
  const bool benchmark = context.benchmarkCuDNN(), deterministic = context.deterministicAlgorithms();
  const bool fill = context.deterministicFillUninitializedMemory();
  at::Tensor next;
  {
    const ProcessSwitches outer;
    next = at::rand({4});  // what a program would draw
    {
      const ProcessSwitches inner;
      at::set_num_threads(threads + 2);
      apply({.tf32 = true, .cudnn_benchmark = !benchmark, .deterministic = !deterministic});
      (void)at::rand({100});
      EXPECT_EQ(at::get_num_threads(), threads + 2);
      EXPECT_NE(context.deterministicAlgorithms(), deterministic);
    }
    EXPECT_EQ(at::get_num_threads(), threads);
    EXPECT_EQ(context.deterministicAlgorithms(), deterministic);
    apply({.tf32 = true, .deterministic = true});
  }
  EXPECT_EQ(context.float32Precision(at::Float32Backend::CUDA, at::Float32Op::CONV), convolutions);
  EXPECT_EQ(context.benchmarkCuDNN(), benchmark);
  EXPECT_EQ(context.deterministicFillUninitializedMemory(), fill);
  EXPECT_TRUE(at::rand({4}).equal(next)) << "the generator continues where it was";
}

}  // namespace
}  // namespace stoker::precision
