// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/tips/profiler_switch.h"

#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <exception>
#include <set>

namespace stoker::study {
namespace {

using torch::profiler::impl::ActivityType;

const std::set<ActivityType> kActivities{ActivityType::CPU};

}  // namespace

ProfilerSwitch::~ProfilerSwitch() {
  try {
    stop();
  } catch (const std::exception&) {  // the records are not used
  }
}

void ProfilerSwitch::start() {
  if (runs_) {
    return;
  }
  const torch::profiler::impl::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO);
  torch::autograd::profiler::prepareProfiler(config, kActivities);
  torch::autograd::profiler::enableProfiler(
      config, kActivities,
      {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE});
  runs_ = true;
}

void ProfilerSwitch::stop() {
  if (runs_) {
    runs_ = false;
    (void)torch::autograd::profiler::disableProfiler();
  }
}

void set_anomaly_mode(bool on) { torch::autograd::AnomalyMode::set_enabled(on); }

}  // namespace stoker::study
