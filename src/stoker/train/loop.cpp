// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/loop.h"

#include <algorithm>
#include <deque>

#include "stoker/base/clock.h"
#include "stoker/base/error.h"

namespace stoker::train {
namespace {

// Looks for steps that were skipped, a few steps late on a GPU so that nothing waits for it.
class SkipWatch {
 public:
  SkipWatch(const LoopParts& parts, std::int64_t limit, std::size_t lag) : parts_(parts), limit_(limit), lag_(lag) {
    const auto& names = parts.step.scalar_names();
    column_ = static_cast<std::size_t>(std::ranges::find(names, "skipped") - names.begin());
  }

  void watch(std::int64_t step, std::shared_ptr<const core::PendingScalars> scalars,
             std::vector<std::int64_t> samples) {
    seen_.push_back({step, std::move(scalars), std::move(samples)});
    check_down_to(lag_);
  }
  // Before anything that waits for the device anyway: a checkpoint never hides a fault.
  void finish() { check_down_to(0); }

 private:
  struct Seen {
    std::int64_t step;
    std::shared_ptr<const core::PendingScalars> scalars;
    std::vector<std::int64_t> samples;
  };

  void check_down_to(std::size_t left) {
    while (seen_.size() > left) {
      const Seen oldest = std::move(seen_.front());
      seen_.pop_front();
      check(oldest);
    }
  }

  void check(const Seen& seen) const {
    const auto skipped = static_cast<std::int64_t>(seen.scalars->read().values[column_]);
    if (skipped == 0) {
      return;
    }
    parts_.events.emit(core::FaultSurvived{
        seen.step, "non_finite",
        fmt::format("step {} was skipped: its loss or gradients are not finite ({} in a row)", seen.step, skipped)});
    if (skipped > limit_) {
      std::vector<std::string> names;
      for (std::size_t i = 0; i < std::min<std::size_t>(seen.samples.size(), 8); ++i) {
        names.push_back(parts_.sample_name(seen.samples[i]));
      }
      fail<Error>("train.loop",
                  "{} steps in a row were not finite; the last batch of {} began with {}; lower lr, set clip=1 "
                  "or precision=fp32, or look at these samples",
                  skipped, seen.samples.size(), fmt::join(names, ", "));
    }
  }

  const LoopParts& parts_;
  std::int64_t limit_;
  std::size_t lag_, column_;
  std::deque<Seen> seen_;
};

// One global batch: compute, commit, say so.
void take_step(const LoopParts& parts, const core::Batch& batch, SkipWatch& skips, Stopwatch& between_steps,
               double waited) {
  Progress& progress = parts.progress;
  const double lr = parts.lr(progress.step);
  parts.step.compute(batch, progress.step);
  parts.step.commit(lr);

  ++progress.step;
  progress.position = {batch.position().epoch, batch.position().step + 1};
  const auto scalars = parts.scalars.write(parts.step.scalars());
  parts.events.emit(core::StepFinished{batch.position(), progress.step, batch.size(), between_steps.restart(), waited,
                                       lr, parts.memory_bytes(), scalars, 0});
  skips.watch(progress.step, scalars, batch.indices());
}

// Evaluates, remembers the best, saves it. True when early stopping says so.
bool evaluate(const LoopParts& parts, const Plan& plan) {
  Progress& progress = parts.progress;
  if (!parts.evaluate || progress.evaluated_step == progress.step) {  // a finished run that goes on has its figures
    return false;
  }
  const Stopwatch watch;
  core::Evaluated event{progress.position, progress.step, "val", parts.evaluate(), watch.seconds(), false};
  const core::MetricValue& chosen = event.metrics.front();
  const double before = progress.best_metric;
  const bool gain = std::isnan(before) ? !std::isnan(chosen.value)
                                       : (chosen.higher_is_better ? chosen.value > before : chosen.value < before);
  event.best = gain;
  progress.evaluated_step = progress.step;
  progress.best_metric = gain ? chosen.value : before;
  progress.evaluations_without_gain = gain ? 0 : progress.evaluations_without_gain + 1;
  parts.events.emit(std::move(event));
  if (parts.show) {
    parts.show();
  }
  if (gain) {
    parts.save("best");
  }
  return plan.early_stop > 0 && progress.evaluations_without_gain >= plan.early_stop;
}

}  // namespace

LoopEnd run_loop(const LoopParts& parts, const Plan& plan, std::int64_t last_step) {
  Progress& progress = parts.progress;
  SkipWatch skips(parts, plan.skip_limit, plan.device == "cpu" ? 0 : 8);
  Stopwatch between_steps;
  const double seconds_before = progress.seconds;
  const Stopwatch session;
  if (plan.time > 0 && seconds_before >= plan.time) {
    return LoopEnd::kTimeUp;
  }

  while (progress.step < last_step) {
    const Stopwatch wait;
    std::optional<core::Batch> batch = parts.source.next();
    const double waited = wait.seconds();
    if (batch) {
      take_step(parts, *batch, skips, between_steps, waited);
      progress.seconds = seconds_before + session.seconds();
    } else {
      progress.position = {progress.position.epoch + 1, 0};
    }

    const bool epoch_done = !batch;
    const bool finished = progress.step >= last_step;
    const bool time_up = plan.time > 0 && progress.seconds >= plan.time;
    const bool stopped = parts.stop;
    const bool to_evaluate = plan.eval_every > 0 ? batch && progress.step % plan.eval_every == 0 : epoch_done;
    bool enough = false;
    if (to_evaluate || finished || time_up) {
      skips.finish();
      enough = evaluate(parts, plan);
    }
    const bool due = plan.save_every > 0 ? batch && progress.step % plan.save_every == 0 : epoch_done;
    if (due || finished || time_up || stopped || enough) {
      skips.finish();
      parts.save("last");
    }
    if (enough || (!finished && (time_up || stopped))) {
      return enough ? LoopEnd::kEarlyStop : time_up ? LoopEnd::kTimeUp : LoopEnd::kStopped;
    }
    if (epoch_done || to_evaluate) {
      between_steps.restart();  // what the epoch's end or an evaluation took is no step's time
    }
  }
  return LoopEnd::kDone;
}

}  // namespace stoker::train
