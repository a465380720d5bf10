// SPDX-License-Identifier: Apache-2.0
// metrics.jsonl: one JSON object per event, for programs. A sink of the EventBus; called on one thread at a time.
// docs/formats.md describes the keys.
#pragma once

#include <filesystem>
#include <memory>

#include "stoker/core/events.h"

namespace stoker::io {

// Writes all events but the progress of evaluations and histograms. Leaves out the folder and plan of the run, so that
// the files of a resumed and an uninterrupted run are equal, but for the records of time (docs/formats.md).
class MetricsJsonl final : public core::EventSink {
 public:
  // run_folder: must exist. Continues an existing metrics.jsonl (on a resume call cut_metrics() first) without
  // repeating run_started or findings that it already has. IoError if it cannot be written, here or later.
  explicit MetricsJsonl(const std::filesystem::path& run_folder);
  ~MetricsJsonl() override;

  void on(const core::Event& event) override;
  void flush() override;
  [[nodiscard]] bool wants_every_step() const override { return true; }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker::io
