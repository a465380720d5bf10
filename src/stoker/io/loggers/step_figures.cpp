// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/loggers/step_figures.h"

#include <algorithm>

#include "stoker/base/file.h"

namespace stoker::io {

StepFigures::StepFigures(const std::vector<std::string>& scalars) {
  for (const std::string& name : scalars) {
    tags_.push_back("train/" + printable(name));
  }
}

void StepFigures::add(const core::StepFinished& step) {
  samples_ += step.samples;
  seconds_ += step.seconds;
  waited_ += step.data_wait_seconds;
}

std::vector<std::pair<std::string, StepValue>> StepFigures::take(const core::StepFinished& step) {
  std::vector<std::pair<std::string, StepValue>> figures;
  const core::Scalars values = step.scalars ? step.scalars->read() : core::Scalars{};
  for (std::size_t i = 0; i < std::min(values.count, tags_.size()); ++i) {
    figures.emplace_back(tags_[i], values.values[i]);
  }
  figures.emplace_back("optimizer/lr", step.lr);
  if (seconds_ > 0) {
    figures.emplace_back("speed/samples_per_second", static_cast<double>(samples_) / seconds_);
    figures.emplace_back("speed/data_wait_share", waited_ / seconds_);
  }
  if (step.memory_bytes >= 0) {
    figures.emplace_back("memory/device_bytes", static_cast<double>(step.memory_bytes));
  }
  samples_ = 0;
  seconds_ = waited_ = 0;
  return figures;
}

std::vector<std::pair<std::string, double>> phase_shares(const core::Anatomy& period) {
  std::vector<std::pair<std::string, double>> shares;
  for (const core::PhaseTime& phase : period.phases) {
    if (!period.whole && period.seconds > 0 && phase.seconds >= 0) {
      shares.emplace_back("time/" + printable(phase.name) + "_share", phase.seconds / period.seconds);
    }
  }
  return shares;
}

}  // namespace stoker::io
