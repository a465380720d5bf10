// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/epoch_trial.h"

#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "stoker/base/clock.h"
#include "stoker/core/communicator.h"
#include "stoker/device/backend.h"
#include "stoker/job/setup.h"
#include "stoker/optim/optimizer.h"
#include "stoker/precision/grad_scaler.h"
#include "stoker/train/evaluate.h"
#include "stoker/train/step.h"

namespace stoker::job {
namespace {

// A checkpoint is written, synchronised and read back file by file: measured on a virtual disk in a cloud.
constexpr double kSaveSeconds = 0.03, kSaveBytesPerSecond = 200e6;

// Seconds of each of three measurements: the first pass, the second and the evaluation.
double window_of(const train::Plan& plan) { return std::clamp(0.004 * plan.time, 0.4, 4.0); }

class EpochTrial {
 public:
  explicit EpochTrial(const Setup& setup)
      : setup_(setup),
        window_(window_of(setup.plan)),
        scaler_({.scaling = setup.plan.precision == "fp16"}, setup.device),
        optimizer_(optim::make_optimizer({.name = setup.plan.optimizer}, setup.model->parameters())),
        step_({.model = *setup.model, .optimizer = *optimizer_, .scaler = scaler_, .ranks = ranks_},
              {.autocast = setup.autocast_dtype()}) {}

  // Seconds of the first epoch, from those of its first batches, after a step for which kernels are built.
  double first_epoch() {
    const auto source = setup_.training_source({});
    taken_ = compute(*source);
    return epoch(*source, std::numeric_limits<std::int64_t>::max());
  }
  // Of a later one, from the samples of the first one: other samples might have to be decoded.
  double later_epoch() {
    const std::int64_t most = std::exchange(taken_, 0);
    return epoch(*setup_.training_source({}), most);
  }

  // Seconds per checkpoint, estimated from its bytes: none is written before there is a run.
  [[nodiscard]] double save() const {
    std::int64_t bytes = optimizer_->state_bytes();
    for (const core::Parameter& parameter : setup_.model->parameters()) {
      bytes += static_cast<std::int64_t>(parameter.tensor.nbytes());
    }
    return kSaveSeconds + static_cast<double>(bytes) / kSaveBytesPerSecond;
  }

  // Seconds of the optimizer's part of a step. Gradients and learning rate are 0, so that no weight changes.
  double commit() {
    for (const core::Parameter& parameter : setup_.model->parameters()) {
      if (parameter.tensor.requires_grad()) {
        parameter.tensor.mutable_grad() = at::zeros_like(parameter.tensor.detach());
      }
    }
    optimizer_->step(0);
    wait();
    const Stopwatch watch;
    optimizer_->step(0);
    wait();
    const double seconds = watch.seconds();
    step_.drop();
    return seconds;
  }

 private:
  void wait() const { device::backend_for(setup_.device).synchronize(setup_.device); }

  double epoch(core::BatchSource& source, std::int64_t most) {
    const Stopwatch watch;
    std::int64_t samples = 0;
    while (samples == 0 || (watch.seconds() < window_ && samples < most)) {
      samples += compute(source);
    }
    taken_ += samples;
    const double seconds = watch.seconds() / static_cast<double>(samples);
    return static_cast<double>(setup_.task->size(tasks::Split::kTrain)) / setup_.ranks->size() * seconds;
  }

  // Samples of the step that was computed and dropped.
  std::int64_t compute(core::BatchSource& source) {
    std::optional<core::Batch> batch = source.next();
    if (!batch) {
      batch = source.next();  // a short epoch has ended: take the next one
    }
    step_.compute(*batch, 0, setup_.plan.microbatch);
    wait();
    step_.drop();
    return batch->size();
  }

  const Setup& setup_;
  double window_;
  std::int64_t taken_ = 0;  // samples of the pass, from the start of the epoch
  core::SingleRank ranks_;
  precision::GradScaler scaler_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  train::Step step_;
};

// Seconds of an evaluation of the validation split, estimated from its first batches.
double time_evaluation(const Setup& setup) {
  const std::int64_t size = setup.task->size(tasks::Split::kVal) / setup.ranks->size();  // this rank's part
  if (size == 0) {
    return 0;
  }
  const train::EvaluationMode mode(*setup.model);
  const auto source = setup.evaluation_source(tasks::Split::kVal);
  const double window = window_of(setup.plan);
  const Stopwatch watch;
  std::int64_t samples = 0;
  double seconds = 0;
  train::Recovery recovery = setup.evaluation_recovery();
  const auto go_on = [&](const core::Batch& batch) {
    samples += batch.size();
    device::backend_for(setup.device).synchronize(setup.device);
    seconds = watch.seconds();
    return seconds < window;
  };
  (void)train::evaluate(*setup.model, *source, setup.autocast_dtype(), {.go_on = go_on, .split = &recovery});
  // Without samples, if all are unreadable, it takes no time.
  return samples == 0 ? 0 : seconds / static_cast<double>(samples) * static_cast<double>(size);
}

}  // namespace

train::EpochTime time_epoch(const Setup& setup) {
  EpochTrial trial(setup);
  const double first = trial.first_epoch();
  const double later = trial.later_epoch();
  const std::int64_t steps = train::steps_per_epoch(setup.plan, setup.task->size(tasks::Split::kTrain));
  const double commits = static_cast<double>(steps) * trial.commit();
  return {first + commits, later + commits, time_evaluation(setup), trial.save()};
}

}  // namespace stoker::job
