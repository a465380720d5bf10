// SPDX-License-Identifier: Apache-2.0
#include "stoker/precision/process_switches.h"

#include <ATen/Parallel.h>

#include <mutex>

namespace stoker::precision {
namespace {

constexpr std::array kOps = {at::Float32Op::MATMUL, at::Float32Op::CONV, at::Float32Op::RNN};

at::Generator cpu_generator() { return at::globalContext().defaultGenerator(at::kCPU); }

}  // namespace

ProcessSwitches::ProcessSwitches() : threads_(at::get_num_threads()) {
  const at::Context& context = at::globalContext();
  for (std::size_t i = 0; i < kOps.size(); ++i) {
    float32_[i] = context.float32Precision(at::Float32Backend::CUDA, kOps[i]);
  }
  benchmark_ = context.benchmarkCuDNN();
  deterministic_cudnn_ = context.deterministicCuDNN();
  deterministic_ = context.deterministicAlgorithms();
  warn_only_ = context.deterministicAlgorithmsWarnOnly();
  fill_ = context.deterministicFillUninitializedMemory();
  at::Generator generator = cpu_generator();
  const std::lock_guard lock(generator.mutex());
  generator_ = generator.get_state();
}

ProcessSwitches::~ProcessSwitches() {
  if (at::get_num_threads() != threads_) {
    at::set_num_threads(threads_);
  }
  at::Context& context = at::globalContext();
  for (std::size_t i = 0; i < kOps.size(); ++i) {
    context.setFloat32Precision(at::Float32Backend::CUDA, kOps[i], float32_[i]);
  }
  context.setBenchmarkCuDNN(benchmark_);
  context.setDeterministicCuDNN(deterministic_cudnn_);
  context.setDeterministicAlgorithms(deterministic_, warn_only_);
  context.setDeterministicFillUninitializedMemory(fill_);
  at::Generator generator = cpu_generator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(generator_);
}

}  // namespace stoker::precision
