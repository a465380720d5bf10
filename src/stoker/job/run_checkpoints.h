// SPDX-License-Identifier: Apache-2.0
// Writes the checkpoints of a training: first the rows of the logs, "best" only if it is better than the existing one,
// and before an error only finite values. The part of Job between the loop and the store. One thread.
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

  // kind: "last" or "best". A "best" that is better than the newest evaluation stays: a run that continues from an
  // earlier step than its best repeats those steps, or takes others.
  void save(const std::string& kind);
  // Writes "last" before an error ends the run, and a Finding about it; if one of its values is not finite, only a
  // Finding.
  void rescue();
  // Of the whole run, on the validation split; empty if nothing was evaluated.
  [[nodiscard]] std::vector<core::MetricValue> best() const;

 private:
  void write(const std::string& kind, const io::Checkpoint& checkpoint);
  [[nodiscard]] bool best_is_better() const;

  const RunFolder& run_;
  const Setup& setup_;
  Session& session_;
  io::EventBus& bus_;
  io::CheckpointStore store_;
  std::optional<core::MetricValue> best_before_;  // of the checkpoint "best" that a resumed run already has
};

}  // namespace stoker::job
