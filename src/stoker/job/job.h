// SPDX-License-Identifier: Apache-2.0
// A whole run with its parts connected: data, plan, model, step, sinks. Does in a C++ program what `stoker train` does.
// While it lives, torch's global settings are those of the run (threads, TF32, determinism, anomaly detection,
// generators); then they are restored. One thread at a time; stop may be set from any thread. Every error is a
// stoker::Error: DeviceError if the device failed, OutOfMemory if memory ran out.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stoker/core/communicator.h"
#include "stoker/core/events.h"
#include "stoker/job/passes.h"
#include "stoker/job/request.h"
#include "stoker/job/run_folder.h"
#include "stoker/train/loop.h"
#include "stoker/train/plan.h"

namespace stoker::job {

struct Outcome {
  train::LoopEnd end = train::LoopEnd::kDone;
  std::int64_t step = 0;
  double seconds = 0;                   // training time over all sessions of the run
  std::vector<core::MetricValue> best;  // of the best checkpoint on the validation split; empty: none
  std::vector<core::MetricValue> test;  // of the best checkpoint on the test split; empty: none
  bool ranks_in_trouble = false;        // stopped since a failure of one rank could not be told to the others any more
  std::string undone;                   // what a signal interrupted and a resume starts with; empty: nothing
};

class Job {
 public:
  // Inspects the data, decides the plan (with timed trials unless the request has a plan file) and builds the model.
  // say: receives what was found (the first of facts() as soon as it is known), and the progress of long work.
  [[nodiscard]] static Job prepare(Request request, const Say& say);
  // The job of an existing run, with its plan, at its last checkpoint. changes: key=value of epochs, steps, time,
  // eval_every, save_every, early_stop, schedule_steps, threads, ranks, rank_timeout, pipeline or pipeline_cut, the
  // values that a resume may change. If they make the learning rate jump, train() emits a Finding. ranks: as in
  // Request.
  [[nodiscard]] static Job resume(const std::filesystem::path& run, const std::vector<std::string>& changes,
                                  const Say& say, std::shared_ptr<core::Communicator> ranks = nullptr);
  // prepare(), or resume() of the run that the request's starter has begun with the same command (Request::start): from
  // the first step, with the same plan, if it ended before its first checkpoint. ConfigError if the run that the
  // request names was begun by another command.
  [[nodiscard]] static Job prepare_or_resume(Request request, const Say& say);
  Job(Job&&) noexcept;
  ~Job();

  [[nodiscard]] const train::Plan& plan() const;
  // The model, the data and the device, in a line.
  [[nodiscard]] std::string title() const;
  // Facts that are not in the plan: data, classes, parameters, arithmetic, as lines for people.
  [[nodiscard]] std::vector<std::string> facts() const;
  // Who runs where: a line of headings, and one for each rank; empty with one rank. A collective call.
  [[nodiscard]] std::string places() const;
  // The search that microbatch=auto or batch=auto asked for; empty: none.
  [[nodiscard]] const std::optional<PassChoice>& passes() const;
  // Remarks on the data, as train() emits them.
  [[nodiscard]] const std::vector<std::string>& findings() const;

  // Creates the run folder (of a new run), trains until done or until the step after stop is set, then evaluates the
  // best checkpoint on the test split if there is one. sinks: besides the folder's metrics.csv and metrics.jsonl. A
  // second call continues from the last checkpoint, as after resume(); CheckpointError if the first call ended before
  // it saved one. If an error ends it, the last checkpoint has the steps so far, if they are finite.
  Outcome train(std::vector<std::unique_ptr<core::EventSink>> sinks, const std::atomic<bool>& stop);
  // Trains steps that nobody keeps and profiles the last of them: no run folder is made or changed. Returns the record
  // as JSON (docs/observe-profile.md). trace: the file for the trace. Call it instead of train().
  [[nodiscard]] std::string profile(std::int64_t steps, const std::filesystem::path& trace, const Say& say);
  // The run folder; empty before train() starts a new run.
  [[nodiscard]] std::filesystem::path run_path() const;

 private:
  struct State;
  explicit Job(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace stoker::job
