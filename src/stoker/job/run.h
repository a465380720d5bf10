// SPDX-License-Identifier: Apache-2.0
// One call of Job::train: the session with its event bus, checkpoints and sources, which owns the training loop, then
// tests the best checkpoint and writes the report. One thread; stop may be set from anywhere.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stoker/base/clock.h"
#include "stoker/device/scalar_ring.h"
#include "stoker/io/checkpoint/store.h"
#include "stoker/io/event_bus.h"
#include "stoker/job/job.h"
#include "stoker/job/memory_watch.h"
#include "stoker/job/profile_watch.h"
#include "stoker/job/rank_watch.h"
#include "stoker/job/run_checkpoints.h"
#include "stoker/job/run_folder.h"
#include "stoker/job/run_socket.h"
#include "stoker/job/session.h"
#include "stoker/job/setup.h"
#include "stoker/job/source_listener.h"
#include "stoker/job/split_evaluation.h"
#include "stoker/observe/anatomy/step_anatomy.h"
#include "stoker/observe/monitor/monitor.h"
#include "stoker/optim/schedule.h"
#include "stoker/train/loop.h"

namespace stoker::job {

class Run final : private train::LoopOwner {
 public:
  // resumed: the checkpoint to continue from; none: a fresh run. sinks: besides the folder's own logs. With several
  // ranks, rank 0 writes the run; the others keep only their own logs, in ranks/N of the folder.
  Run(Setup& setup, const RunFolder& folder, std::optional<io::Checkpoint> resumed,
      std::vector<std::unique_ptr<core::EventSink>> sinks, const std::atomic<bool>& stop);

  // Trains to the end, tests, reports. remark: a finding on how the run continues; empty: none. Errors are typed;
  // before they leave, the sinks receive them and the report is written.
  [[nodiscard]] Outcome train(const std::string& remark);

 private:
  // Called by the loop.
  double begin_step(std::int64_t step) override;
  bool validates() const override { return validation_ != nullptr; }
  std::vector<core::MetricValue> evaluate() override;
  void show() override;
  void computed(const core::Batch& batch) override;
  double step_done() override;
  void booked(core::PhaseBook& book, std::int64_t step) override {
    anatomy_->step_done(book, step, std::exchange(apart_, 0), "profile");
    if (ranks_) {
      ranks_->step_done(step, book.total());
    }
  }
  void save(const char* kind) override;
  void rescue() override;
  std::string sample_name(std::int64_t index) const override { return setup_.task->sample_name(index); }
  std::int64_t memory_bytes() override { return memory_bytes_(); }
  bool stop_requested() const override { return stop_ || ranks_in_trouble_; }

  std::int64_t begin(std::optional<io::Checkpoint> resumed);
  void announce(const std::string& remark);
  void watch_machine();
  void watch_ranks();
  void end_watch();
  Outcome train_and_test();
  [[nodiscard]] train::LoopEnd train_steps();
  void tell_until_error(const core::PhaseBook& book);
  void test_best(Outcome& outcome);
  void write_report();
  // Metrics are not needed any more: the run was stopped, or its time is up.
  [[nodiscard]] bool gives_up() const;

  [[nodiscard]] bool first() const { return setup_.ranks->rank() == 0; }

  Setup& setup_;
  const RunFolder& folder_;
  const RunFolder own_;  // of this rank
  const std::atomic<bool>& stop_;
  bool ranks_in_trouble_ = false;
  Session session_;
  std::int64_t last_step_;
  optim::ScheduleOptions schedule_;
  device::ScalarRing ring_;
  io::EventBus bus_;
  std::optional<RunCheckpoints> checkpoints_;  // these two report, so they begin after the sinks know the run
  std::optional<SourceListener> listener_;
  std::unique_ptr<SplitEvaluation> validation_;  // null: no validation split
  std::function<std::int64_t()> memory_bytes_;
  std::optional<MemoryWatch> memory_;
  std::optional<observe::Monitor> monitor_;      // while it trains; none with monitor=off
  std::optional<observe::StepAnatomy> anatomy_;  // while the loop runs
  std::optional<RankWatch> ranks_;               // while the loop runs, with several ranks
  ProfileOrders orders_;
  std::optional<ProfileWatch> profile_;
  std::optional<RunSocket> socket_;  // the last to begin: who asks finds a run that answers
  double apart_ = 0;                 // seconds of the last step that a profile took
  std::int64_t samples_ = 0;         // of the batch that was computed, over all ranks
  Stopwatch watch_;
  double seconds_before_;  // of the run, in earlier sessions
};

}  // namespace stoker::job
