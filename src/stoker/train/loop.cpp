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
    while (seen_.size() > lag_) {
      check(seen_.front());
      seen_.pop_front();
    }
  }

 private:
  struct Seen {
    std::int64_t step;
    std::shared_ptr<const core::PendingScalars> scalars;
    std::vector<std::int64_t> samples;
  };

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

  while (progress.step < last_step) {
    const Stopwatch wait;
    std::optional<core::Batch> batch = parts.source.next();
    const double waited = wait.seconds();
    if (batch) {
      const double lr = parts.lr(progress.step);
      parts.step.compute(*batch, progress.step);
      parts.step.commit(lr);

      ++progress.step;
      progress.position = {batch->position().epoch, batch->position().step + 1};
      progress.seconds = seconds_before + session.seconds();
      const auto scalars = parts.scalars.write(parts.step.scalars());
      parts.events.emit(core::StepFinished{batch->position(), progress.step, batch->size(), between_steps.restart(),
                                           waited, lr, parts.memory_bytes(), scalars, 0});
      skips.watch(progress.step, scalars, batch->indices());
    } else {
      progress.position = {progress.position.epoch + 1, 0};
    }

    const bool epoch_done = !batch;
    const bool finished = progress.step >= last_step;
    if (epoch_done || finished) {
      const bool enough = evaluate(parts, plan);
      if (plan.save_every == 0 || finished || enough) {
        parts.save("last");
      }
      between_steps.restart();
      if (enough) {
        return LoopEnd::kEarlyStop;
      }
    } else if (plan.save_every > 0 && progress.step % plan.save_every == 0) {
      parts.save("last");
    }
    const bool time_up = plan.time > 0 && progress.seconds >= plan.time;
    if (!finished && (parts.stop || time_up)) {
      if (time_up && !epoch_done) {
        evaluate(parts, plan);
      }
      parts.save("last");
      return time_up ? LoopEnd::kTimeUp : LoopEnd::kStopped;
    }
  }
  return LoopEnd::kDone;
}

}  // namespace stoker::train
