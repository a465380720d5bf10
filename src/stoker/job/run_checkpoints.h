// SPDX-License-Identifier: Apache-2.0
// When and how the checkpoints of a training are written: the rows of the logs first, "best" only where it beats the
// one that is there, and before an error only what is finite. The part of Job between the loop and the store. One
// thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stoker/io/checkpoint/store.h"
#include "stoker/io/event_bus.h"
#include "stoker/job/run_folder.h"
#include "stoker/job/session.h"
#include "stoker/job/setup.h"

namespace stoker::job {

class RunCheckpoints {
 public:
  RunCheckpoints(const RunFolder& run, const Setup& setup, Session& session, io::EventBus& bus);

  // kind: "last" or "best". A "best" that is better than the newest evaluation stays: a run that goes on from an
  // earlier step than that of its best takes the way there once more, or another one.
  void save(const std::string& kind);
  // "last", before an error ends the run, and a Finding that says so; where a value of it is not finite, a Finding
  // alone.
  void rescue();
  // Of the whole run, on validation; none where nothing was evaluated.
  [[nodiscard]] std::vector<core::MetricValue> best() const;

 private:
  void write(const std::string& kind, const io::Checkpoint& checkpoint);
  [[nodiscard]] bool best_is_better() const;

  const RunFolder& run_;
  const Setup& setup_;
  Session& session_;
  io::EventBus& bus_;
  io::CheckpointStore store_;
  std::optional<core::MetricValue> best_before_;  // of the checkpoint "best" that a resumed run has already
};

}  // namespace stoker::job
