// SPDX-License-Identifier: Apache-2.0
// tensorboard/events.out.tfevents.*: the log of a run for `tensorboard --logdir RUN`, or for a folder of runs. A sink
// of the EventBus; called on one thread at a time. docs/formats.md describes the tags.
#pragma once

#include <filesystem>
#include <memory>

#include "stoker/core/events.h"

namespace stoker::io {

// Writes scalars of steps and evaluations, the plan as hyperparameters, artifacts as images and text, findings and
// faults as text. Steps: the first 1,000 and about 10,000 more, evenly spaced: TensorBoard shows 1,000 points per
// scalar, and a run of 10^6 steps needs a few megabytes (metrics.csv has all steps). The choice depends only on step
// numbers.
//
// Each session of a run has its own file; names sort by session. A resumed session begins with a mark that discards
// later steps of earlier files; files are never rewritten.
class TensorBoardLog final : public core::EventSink {
 public:
  // run_folder: must exist at the first event. Nothing is opened before that: on() and flush() throw the IoError of a
  // folder or disk, so that the bus drops this log and the run continues.
  explicit TensorBoardLog(const std::filesystem::path& run_folder);
  ~TensorBoardLog() override;

  void on(const core::Event& event) override;
  void flush() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker::io
