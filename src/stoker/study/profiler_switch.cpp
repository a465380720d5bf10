// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/profiler_switch.h"

#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <cstdlib>
#include <set>

namespace stoker::study {
namespace {

using torch::profiler::impl::ActivityType;

const std::set<ActivityType> kActivities{ActivityType::CPU};

bool running = false;

}  // namespace

void start_profiler() {
  ::setenv("KINETO_LOG_LEVEL", "5", /*overwrite=*/0);  // it would complain of every machine without a GPU
  const torch::profiler::impl::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO);
  torch::autograd::profiler::prepareProfiler(config, kActivities);
  torch::autograd::profiler::enableProfiler(
      config, kActivities,
      {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE});
  running = true;
}

void stop_profiler() {
  if (running) {
    running = false;
    (void)torch::autograd::profiler::disableProfiler();
  }
}

void set_anomaly_mode(bool on) { torch::autograd::AnomalyMode::set_enabled(on); }

}  // namespace stoker::study
