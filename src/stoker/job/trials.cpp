// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/trials.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "stoker/base/clock.h"
#include "stoker/core/communicator.h"
#include "stoker/device/backend.h"
#include "stoker/job/setup.h"
#include "stoker/optim/optimizer.h"
#include "stoker/precision/autocast.h"
#include "stoker/precision/grad_scaler.h"
#include "stoker/train/step.h"

namespace stoker::job {
namespace {

constexpr std::string_view kChannelsLast = "channels_last";
// A trial's step, so that all trials take less than a second; where a step of two samples takes longer, two steps a
// candidate and the first one, for which kernels are built.
constexpr double kLongestStep = 0.1;
constexpr double kTurnsSeconds = 0.08;  // of candidates that are compared: the demo starts in a third of PyTorch's time
constexpr double kSilence = 0.5;        // seconds before it is said that trials take their time
constexpr std::size_t kFewestTurns = 2, kMostTurns = 9;

// Not the fastest (but of two, which is all that a long step gets): where others keep a core busy, a step on all cores
// is quick once in a while and takes five times as long as on one thread the rest of the time; the run will meet the
// same neighbours.
double middle(std::vector<double> values) {
  const auto found = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, found);
  return *found;
}

}  // namespace

void StepTrials::choose_samples() {
  batch_ = setup_.training_source({})->next();
  const std::int64_t most = std::min(setup_.plan.microbatch, batch_->size());
  if (setup_.device.is_cuda()) {  // a GPU shows its speed on whole batches only, and is quick about it
    samples_ = most;
    return;
  }
  // As many as a step can afford, at least two (batch norm). Not fewer for the sake of speed: on a few samples, threads
  // and half precision hardly help.
  samples_ = std::min<std::int64_t>(2, most);
  seconds_ = usual_seconds(samples_);
  double growth = 0;  // of a step's seconds by a sample; not known yet
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
  // One slow reading must not make the trials small: the better one of two.
  return std::min(time_step(part, precision), time_step(part, precision));
}

double StepTrials::time_step(const core::Batch& batch, const std::string& precision) {
  if (slow_ && since_.seconds() > kSilence) {
    std::exchange(slow_, {})();
  }
  core::SingleRank ranks;
  const auto optimizer = optim::make_optimizer({}, setup_.model->parameters());
  precision::GradScaler scaler({.scaling = precision == "fp16"}, setup_.device);
  train::StepOptions options;
  options.autocast = precision::autocast_dtype(precision);
  train::Step step({*setup_.model, *optimizer, scaler, ranks}, options);
  const device::Backend& backend = device::backend_for(setup_.device);
  backend.synchronize(setup_.device);
  const Stopwatch watch;
  step.compute(batch, 0);
  backend.synchronize(setup_.device);
  const double seconds = watch.seconds();
  step.drop();
  return seconds;
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
  std::vector<std::vector<double>> seconds(candidates.size());
  std::vector<std::size_t> order;  // of the candidates that are worth more than a first step
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const double first = time_candidate(part, candidates[i]);  // kernels are built for new shapes
    if (first > 4 * std::max(seconds_, kLongestStep)) {
      seconds[i].push_back(first);  // half precision where the CPU has no units for it
    } else {
      order.push_back(i);
    }
  }
  // In turns, so that a busy moment hits all; there and back, so that the layout changes once a turn.
  const Stopwatch watch;
  for (std::size_t turn = 0; turn < kMostTurns && (turn < kFewestTurns || watch.seconds() < kTurnsSeconds); ++turn) {
    for (const std::size_t i : order) {
      seconds[i].push_back(time_candidate(part, candidates[i]));
    }
    std::ranges::reverse(order);
  }
  setup_.model->set_channels_last(setup_.plan.layout == kChannelsLast);
  at::set_num_threads(before);
  std::vector<double> result;
  for (const std::vector<double>& each : seconds) {
    result.push_back(middle(each) / static_cast<double>(samples_));
  }
  return result;
}

core::LoadTime StepTrials::load_time_per_sample() { return setup_.task->load_time_per_sample(); }

}  // namespace stoker::job
