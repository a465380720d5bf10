// SPDX-License-Identifier: Apache-2.0
// metrics.jsonl: one JSON object an event, for programs. A sink of the EventBus; called on one thread at a time.
// The keys are described in docs/formats.md.
#pragma once

#include <filesystem>
#include <memory>

#include "stoker/core/events.h"

namespace stoker::io {

// Writes run_started, step, evaluated, fault, finding, artifact and run_finished. Checkpoints are left out, and so are
// the run's folder and plan: they would make the file of a resumed run differ from an uninterrupted one's.
class MetricsJsonl final : public core::EventSink {
 public:
  // run_folder: must exist. Continues a metrics.jsonl that is there (cut_metrics() it first on a resume), and then
  // repeats neither run_started nor a finding that it holds. IoError if it cannot be written, here or later.
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
