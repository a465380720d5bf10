// SPDX-License-Identifier: Apache-2.0
#include "stoker/precision/process_switches.h"

#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include <mutex>

namespace stoker::precision {
namespace {

constexpr std::array kOps = {at::Float32Op::MATMUL, at::Float32Op::CONV, at::Float32Op::RNN};

// Of the CPU, and of each GPU if CUDA is in use: asking for one would initialise CUDA.
std::vector<at::Generator> generators() {
  std::vector<at::Generator> all{at::globalContext().defaultGenerator(at::kCPU)};
  const at::CUDAHooksInterface& cuda = at::detail::getCUDAHooks();
  for (c10::DeviceIndex i = 0, count = at::hasCUDA() ? cuda.deviceCount() : 0; i < count; ++i) {
    if (cuda.hasPrimaryContext(i)) {
      all.push_back(at::globalContext().defaultGenerator(c10::Device(at::kCUDA, i)));
    }
  }
  return all;
}

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
  anomaly_ = torch::autograd::AnomalyMode::is_enabled();
  anomaly_nan_ = torch::autograd::AnomalyMode::should_check_nan();
  for (at::Generator& generator : generators()) {
    const std::lock_guard lock(generator.mutex());
    generators_.emplace_back(generator, generator.get_state());
  }
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
  torch::autograd::AnomalyMode::set_enabled(anomaly_, anomaly_nan_);
  for (auto& [generator, state] : generators_) {
    try {
      const std::lock_guard lock(generator.mutex());
      generator.set_state(state);
    } catch (const std::exception&) {  // the GPU is lost: the error on its way says so
    }
  }
}

}  // namespace stoker::precision
