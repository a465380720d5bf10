// SPDX-License-Identifier: Apache-2.0
// metrics.csv: one row per step and one row per metric of an evaluation, for pandas and spreadsheets. A sink of the
// EventBus; called on one thread at a time. docs/formats.md describes the columns.
#pragma once

#include <filesystem>
#include <memory>

#include "stoker/core/events.h"

namespace stoker::io {

class MetricsCsv final : public core::EventSink {
 public:
  // run_folder: must exist. Continues an existing metrics.csv (on a resume call cut_metrics() first). IoError if it
  // cannot be written, here or later.
  explicit MetricsCsv(const std::filesystem::path& run_folder);
  ~MetricsCsv() override;

  void on(const core::Event& event) override;
  void flush() override;
  [[nodiscard]] bool wants_every_step() const override { return true; }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker::io
