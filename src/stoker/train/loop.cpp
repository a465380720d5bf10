// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/loop.h"

#include <cmath>
#include <optional>

#include "stoker/base/clock.h"
#include "stoker/train/skip_watch.h"

namespace stoker::train {
namespace {

// One global batch: compute, commit, say so.
void take_step(const LoopParts& parts, const core::Batch& batch, SkipWatch& skips, Stopwatch& between_steps,
               double waited) {
  Progress& progress = parts.progress;
  const double lr = parts.lr(progress.step);
  parts.step.compute(batch, progress.step);
  parts.step.commit(lr);

  const Stopwatch logging;
  ++progress.step;
  progress.position = {batch.position().epoch, batch.position().step + 1};
  const auto scalars = parts.scalars.write(parts.step.scalars());
  parts.events.emit(core::StepFinished{batch.position(), progress.step, batch.size(), between_steps.restart(), waited,
                                       lr, parts.memory_bytes(), scalars, 0});
  skips.watch(progress.step, scalars, batch.indices());
  parts.feed.add(LoopWork::kLog, logging.seconds());
  parts.feed.step_done(progress.step);
}

void save(const LoopParts& parts, const char* kind) {
  const Stopwatch watch;
  parts.save(kind);
  parts.feed.add(LoopWork::kCheckpoint, watch.seconds());
}

enum class Verdict { kGoOn, kEnough, kInterrupted };

// Evaluates, remembers the best, saves it. Enough where early stopping says so.
Verdict evaluate(const LoopParts& parts, const Plan& plan) {
  Progress& progress = parts.progress;
  if (!parts.evaluate || progress.evaluated_step == progress.step) {  // a finished run that goes on has its figures
    return Verdict::kGoOn;
  }
  const Stopwatch watch;
  core::Evaluated event{progress.position, progress.step, "val", parts.evaluate(), watch.seconds(), false};
  if (event.metrics.empty()) {
    return Verdict::kInterrupted;
  }
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
  parts.feed.add(LoopWork::kEvaluation, watch.seconds());
  if (gain) {
    save(parts, "best");
  }
  const bool enough = plan.early_stop > 0 && progress.evaluations_without_gain >= plan.early_stop;
  return enough ? Verdict::kEnough : Verdict::kGoOn;
}

// Whether a run that goes on from here was stopped before it had the figures of this step.
bool owes_evaluation(const Progress& progress, const Plan& plan, std::int64_t last_step) {
  const bool due = plan.eval_every > 0 ? progress.step % plan.eval_every == 0 : progress.position.step == 0;
  return progress.step > 0 && progress.evaluated_step != progress.step && (due || progress.step == last_step);
}

// What follows a step or an epoch's end: evaluation, checkpoint, and whether the run ends here.
std::optional<LoopEnd> settle(const LoopParts& parts, const Plan& plan, std::int64_t last_step, SkipWatch& skips,
                              const std::function<bool()>& time_up, bool to_evaluate, bool to_save) {
  const bool finished = parts.progress.step >= last_step;
  bool late = time_up();
  Verdict verdict = Verdict::kGoOn;
  if (to_evaluate || finished || late) {
    skips.finish();
    verdict = evaluate(parts, plan);
    late = time_up();
  }
  const bool stopped = parts.stop;
  std::optional<LoopEnd> end;
  if (verdict == Verdict::kInterrupted) {
    end = stopped ? LoopEnd::kStopped : LoopEnd::kTimeUp;
    if (!stopped) {
      parts.events.emit(core::Finding{fmt::format(
          "time= was up before the validation after step {} was done: it has no figures", parts.progress.step)});
    }
  } else if (verdict == Verdict::kEnough || finished) {
    end = verdict == Verdict::kEnough ? LoopEnd::kEarlyStop : LoopEnd::kDone;
  } else if (late || stopped) {
    end = late ? LoopEnd::kTimeUp : LoopEnd::kStopped;
  }
  if (to_save || end) {
    skips.finish();
    save(parts, "last");
  }
  return end;
}

}  // namespace

LoopEnd run_loop(const LoopParts& parts, const Plan& plan, std::int64_t last_step) {
  Progress& progress = parts.progress;
  SkipWatch skips(parts, plan.skip_limit, plan.device == "cpu" ? 0 : 8);
  const double seconds_before = progress.seconds;
  const Stopwatch session;
  const auto time_up = [&] {
    progress.seconds = seconds_before + session.seconds();
    return plan.time > 0 && progress.seconds >= plan.time;
  };
  std::optional<LoopEnd> end;
  if (parts.evaluate && owes_evaluation(progress, plan, last_step)) {
    end = settle(parts, plan, last_step, skips, time_up, /*to_evaluate=*/true, /*to_save=*/true);
  } else if (time_up()) {
    end = LoopEnd::kTimeUp;
  }

  parts.feed.start();
  Stopwatch between_steps;
  while (!end && progress.step < last_step) {
    const Stopwatch wait;
    std::optional<core::Batch> batch = parts.source.next();
    const double waited = wait.seconds();
    parts.feed.add(LoopWork::kWait, waited);
    if (batch) {
      take_step(parts, *batch, skips, between_steps, waited);
    } else {
      progress.position = {progress.position.epoch + 1, 0};
    }
    const bool epoch_done = !batch;
    const bool to_evaluate = plan.eval_every > 0 ? batch && progress.step % plan.eval_every == 0 : epoch_done;
    const bool to_save = plan.save_every > 0 ? batch && progress.step % plan.save_every == 0 : epoch_done;
    end = settle(parts, plan, last_step, skips, time_up, to_evaluate, to_save);
    if (epoch_done || to_evaluate) {
      between_steps.restart();  // what the epoch's end or an evaluation took is no step's time
    }
  }
  return end.value_or(LoopEnd::kDone);
}

}  // namespace stoker::train
