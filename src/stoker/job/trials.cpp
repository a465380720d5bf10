// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/trials.h"

#include <ATen/Parallel.h>

#include <algorithm>
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

constexpr double kTrialSeconds = 0.04;   // per candidate, after its warm-up; about 0.5 s for all of them
constexpr std::size_t kMostRepeats = 5;  // of which the middle one counts (see below)

}  // namespace

void StepTrials::choose_samples() {
  batch_ = setup_.training_source({})->next();
  const std::int64_t most = std::min(setup_.plan.microbatch, batch_->size());
  if (setup_.device.is_cuda()) {  // a GPU shows its speed on whole batches only, and is quick about it
    samples_ = most;
    return;
  }
  // The largest slice whose step fits a trial's time, and at least two samples (batch norm).
  samples_ = std::min<std::int64_t>(2, most);
  for (std::int64_t next = samples_; next <= most; next *= 2) {
    samples_ = next;
    const core::Batch part = batch_->slice(0, next);
    (void)time_step(part, "fp32");  // kernels are built for new shapes
    if (time_step(part, "fp32") > kTrialSeconds / 4) {
      return;
    }
  }
}

double StepTrials::time_step(const core::Batch& batch, const std::string& precision) {
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

double StepTrials::step_seconds_per_sample(const std::string& precision, int intra_op) {
  const auto key = std::make_pair(precision, intra_op);
  if (const auto found = known_.find(key); found != known_.end()) {
    return found->second;
  }
  if (!batch_) {
    choose_samples();
  }
  const int before = at::get_num_threads();
  at::set_num_threads(intra_op);
  const core::Batch part = batch_->slice(0, samples_);
  (void)time_step(part, precision);  // kernels are built for new shapes
  // The middle one, not the fastest: where others keep a core busy, a step on all cores is quick once in a while and
  // takes five times as long as on one thread the rest of the time; the run will meet the same neighbours.
  const Stopwatch watch;
  std::vector<double> seconds = {time_step(part, precision)};
  while (seconds.size() < kMostRepeats && watch.seconds() < kTrialSeconds) {
    seconds.push_back(time_step(part, precision));
  }
  at::set_num_threads(before);
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::ranges::nth_element(seconds, middle);
  return known_[key] = *middle / static_cast<double>(samples_);
}

double StepTrials::load_seconds_per_sample() { return setup_.task->load_seconds_per_sample(); }

}  // namespace stoker::job
