// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/loop.h"

#include <memory>
#include <optional>

#include "stoker/base/error.h"
#include "stoker/core/phase.h"
#include "stoker/device/host_allocator.h"
#include "stoker/train/milestones.h"
#include "stoker/train/skip_watch.h"

namespace stoker::train {
namespace {

// What the owner watches in a step is booked to logging.
auto logging(const auto& watch) {
  const core::PhaseScope phase(core::Phase::kLogging);
  return watch();
}

// The loop from the first to the last batch. The time of a step is counted from the end of the previous one.
class Loop {
 public:
  Loop(const LoopParts& parts, const Plan& plan, std::int64_t last_step)
      : parts_(parts),
        plan_(plan),
        last_step_(last_step),
        skips_(parts, plan.skip_limit, plan.device == "cpu" ? 0 : 8),
        milestones_(parts, plan, last_step, skips_) {}
  ~Loop() { parts_.feed.stop(); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  LoopEnd run() {
    try {
      return train();
    } catch (const std::exception& error) {
      if (parts_.step.torn()) {
        milestones_.give_up_state();
      }
      milestones_.rescue(error);
      throw;
    }
  }

 private:
  LoopEnd train() {
    const Progress& progress = parts_.progress;
    std::optional<LoopEnd> end = milestones_.begin();
    parts_.feed.start();
    step_began_ = parts_.feed.now();
    while (!end && progress.step < last_step_) {
      const bool stepped = take_batch();
      const bool to_evaluate = due(plan_.eval_every, stepped), to_save = due(plan_.save_every, stepped);
      end = milestones_.after_step(stepped, to_evaluate, to_save);
      parts_.feed.step_done(progress.step);
      parts_.owner.booked(parts_.feed.book(), progress.step);
      if (!stepped || to_evaluate || to_save) {
        step_began_ = parts_.feed.now();  // the end of an epoch, evaluations and checkpoints are not step time
      }
    }
    return end.value_or(LoopEnd::kDone);
  }

  // Whether something that is due every N steps (0: at the end of an epoch) is due now.
  [[nodiscard]] bool due(std::int64_t every, bool stepped) const {
    return every > 0 ? stepped && parts_.progress.step % every == 0 : !stepped;
  }

  // A step with the next batch; false if the epoch has ended instead.
  bool take_batch() {
    const double before = parts_.feed.waited();
    parts_.recovery.begin_step(parts_.progress.step + 1);
    const std::optional<core::Batch> batch = parts_.recovery.next(parts_.source);
    if (batch) {
      take_step(*batch, parts_.feed.waited() - before);
    } else {
      parts_.progress.position = {parts_.progress.position.epoch + 1, 0};
    }
    return batch.has_value();
  }

  // One global batch: compute, commit, emit the event.
  void take_step(const core::Batch& batch, double waited) {
    Progress& progress = parts_.progress;
    device::begin_host_step();
    const double lr = logging([&] { return parts_.owner.begin_step(progress.step); });
    parts_.step.set_lr(lr);
    compute(batch);
    logging([&] { parts_.owner.computed(batch); });
    commit(lr);
    parts_.recovery.step_done();
    step_began_ += logging([&] { return parts_.owner.step_done(); });
    ++progress.step;
    progress.position = {batch.position().epoch, batch.position().step + 1};
    skips_.watch(progress.step, tell(batch, lr, waited), batch.indices());
  }

  // Returns the scalars of the step, which the device may still be computing.
  std::shared_ptr<const core::PendingScalars> tell(const core::Batch& batch, double lr, double waited) {
    const core::PhaseScope phase(core::Phase::kLogging);
    std::shared_ptr<const core::PendingScalars> scalars = parts_.scalars.write(parts_.step.scalars());
    const double now = parts_.feed.now();
    parts_.events.emit(core::StepFinished{.position = batch.position(),
                                          .step = parts_.progress.step,
                                          .samples = batch.global_size(),
                                          .seconds = now - step_began_,
                                          .data_wait_seconds = waited,
                                          .lr = lr,
                                          .memory_bytes = parts_.owner.memory_bytes(),
                                          .scalars = scalars});
    step_began_ = now;
    return scalars;
  }

  void compute(const core::Batch& batch) {
    try {
      parts_.step.compute(batch, parts_.progress.step, parts_.recovery);
    } catch (const NotFinite& error) {
      fail<Error>("train.loop", "step {}, whose batch of {} began with {}: {}", parts_.progress.step + 1,
                  batch.global_size(), skips_.first_names(batch.indices()), error.reason());
    }
  }

  // A commit changes parameters: if it fails, they belong to no step.
  void commit(double lr) {
    try {
      parts_.step.commit(lr);
    } catch (...) {
      milestones_.give_up_state();
      throw;
    }
  }

  const LoopParts& parts_;
  const Plan& plan_;
  std::int64_t last_step_;
  SkipWatch skips_;
  Milestones milestones_;
  double step_began_ = 0;  // on the clock of parts_.feed
};

}  // namespace

LoopEnd run_loop(const LoopParts& parts, const Plan& plan, std::int64_t last_step) {
  return Loop(parts, plan, last_step).run();
}

}  // namespace stoker::train
