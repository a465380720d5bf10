// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/trials.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "stoker/base/clock.h"
#include "stoker/core/communicator.h"
#include "stoker/device/backend.h"
#include "stoker/job/session.h"
#include "stoker/job/setup.h"
#include "stoker/precision/autocast.h"
#include "stoker/precision/grad_scaler.h"
#include "stoker/train/step.h"
#include "stoker/train/take_turns.h"

namespace stoker::job {
namespace {

constexpr std::string_view kChannelsLast = "channels_last";
// Seconds of a trial's step, so that measuring all candidates takes about a second; if a step of two samples takes
// longer, two steps per candidate besides the first one, which builds kernels.
constexpr double kLongestStep = 0.1;
constexpr double kSilence = 0.5;  // seconds before a message that trials are running

}  // namespace

StepTrials::StepTrials(Setup& setup, std::function<void()> slow)
    : StepTrials(setup, std::move(slow), setup.device.is_cuda()) {}

void StepTrials::choose_samples() {
  batch_ = setup_.training_source({})->next();
  // Without a commit the optimizer is not used: one without state.
  const optim::OptimizerOptions no_state{.name = "sgd", .momentum = 0};
  optimizer_ =
      optim::make_optimizer(whole_steps_ ? optimizer_options(setup_.plan) : no_state, setup_.model->parameters());
  const std::int64_t most = std::min(setup_.plan.microbatch, batch_->size());
  if (whole_steps_) {
    samples_ = most;
    return;
  }
  // As many samples as a step can afford, at least two (batch norm). Not fewer to save time: on a few samples, threads
  // and half precision hardly help.
  samples_ = std::min<std::int64_t>(2, most);
  seconds_ = usual_seconds(samples_);
  double growth = 0;  // seconds of a step per additional sample; unknown so far
  while (samples_ < most) {
    const std::int64_t next = std::min(most, samples_ * 4);
    const auto more = static_cast<double>(next - samples_);
    if (seconds_ + growth * more > kLongestStep) {
      return;
    }
    const double seconds = usual_seconds(next);
    if (seconds > 1.5 * kLongestStep) {
      return;
    }
    growth = (seconds - seconds_) / more;
    samples_ = next;
    seconds_ = seconds;
  }
}

double StepTrials::usual_seconds(std::int64_t samples) {
  const core::Batch part = batch_->slice(0, samples);
  const std::string& precision = setup_.plan.precision;
  (void)time_step(part, precision);  // kernels are built for new shapes
  // One slow measurement must not make the trials small: the better of two.
  return std::min(time_step(part, precision), time_step(part, precision));
}

double StepTrials::time_step(const core::Batch& batch, const std::string& precision) {
  if (slow_ && since_.seconds() > kSilence) {
    std::exchange(slow_, {})();
  }
  core::SingleRank ranks;
  precision::GradScaler scaler({.scaling = precision == "fp16"}, setup_.device);
  train::StepOptions options;
  options.autocast = precision::autocast_dtype(precision);
  options.clip = setup_.plan.clip;
  options.recompute = memory::parse_recompute(setup_.plan.recompute);
  train::Step step({.model = *setup_.model, .optimizer = *optimizer_, .scaler = scaler, .ranks = ranks}, options);
  const device::Backend& backend = device::backend_for(setup_.device);
  backend.synchronize(setup_.device);
  const Stopwatch watch;
  step.compute(batch, 0);
  if (whole_steps_) {
    step.commit(/*lr=*/0);
  }
  backend.synchronize(setup_.device);
  const double seconds = watch.seconds();
  step.drop();
  return seconds;
}

void StepTrials::keep_weights() {
  for (const core::Parameter& parameter : setup_.model->parameters()) {
    weights_.push_back(parameter.tensor.detach().to(c10::kCPU, parameter.tensor.scalar_type(), /*non_blocking=*/false,
                                                    /*copy=*/true));
  }
}

// A learning rate of 0 may still turn -0 into 0.
void StepTrials::restore_weights() {
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    setup_.model->parameters()[i].tensor.detach().copy_(weights_[i]);
  }
  weights_.clear();
}

double StepTrials::time_candidate(const core::Batch& batch, const train::Candidate& candidate) {
  at::set_num_threads(candidate.intra_op);
  setup_.model->set_channels_last(candidate.layout == kChannelsLast);
  return time_step(batch, candidate.precision);
}

bool StepTrials::layouts_can_be_tried() {
  if (!setup_.model->set_channels_last(setup_.plan.layout == kChannelsLast)) {
    return false;
  }
  if (!batch_) {
    choose_samples();
  }
  return samples_ == std::min(setup_.plan.microbatch, batch_->size());
}

std::vector<double> StepTrials::step_seconds_per_sample(const std::vector<train::Candidate>& candidates) {
  if (!batch_) {
    choose_samples();
  }
  const int before = at::get_num_threads();
  const core::Batch part = batch_->slice(0, samples_);
  if (whole_steps_) {
    keep_weights();
  }
  // On a CPU without half-precision units, half precision may take a hundred times as long. On a GPU the first step is
  // long for other reasons.
  const double too_slow = whole_steps_ ? std::numeric_limits<double>::infinity() : 4 * std::max(seconds_, kLongestStep);
  std::vector<double> seconds = train::take_turns(
      candidates.size(), [&](std::size_t i) { return time_candidate(part, candidates[i]); }, too_slow);
  restore_weights();
  setup_.model->set_channels_last(setup_.plan.layout == kChannelsLast);
  at::set_num_threads(before);
  for (double& each : seconds) {
    each /= static_cast<double>(samples_);
  }
  return seconds;
}

core::LoadTime StepTrials::load_time_per_sample() { return setup_.task->load_time_per_sample(); }

}  // namespace stoker::job
