// SPDX-License-Identifier: Apache-2.0
// tensorboard/events.out.tfevents.*: what a run logs, for `tensorboard --logdir RUN` or of a folder of runs. A sink of
// the EventBus; called on one thread at a time. The tags are described in docs/formats.md.
#pragma once

#include <filesystem>
#include <memory>

#include "stoker/core/events.h"

namespace stoker::io {

// Writes scalars of steps and evaluations, the plan as hyper-parameters, artifacts as images and text, findings and
// faults as text. Steps: the first 1,000 and about 10,000 more, evenly: TensorBoard shows 1,000 points of a scalar, and
// a run of 10^6 steps stays at a few megabytes (metrics.csv has all). Which ones depends on their numbers alone.
//
// Each session of a run has its own file, in the order of their names. A resumed one begins with a mark that what
// earlier files hold beyond its checkpoint is void; files are never rewritten.
class TensorBoardLog final : public core::EventSink {
 public:
  // run_folder: must exist when the first event comes. Nothing is opened before that: on() and flush() throw the
  // IoError of a folder or disk that refuses, so that the bus gives this log up and the run goes on.
  explicit TensorBoardLog(const std::filesystem::path& run_folder);
  ~TensorBoardLog() override;

  void on(const core::Event& event) override;
  void flush() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker::io
