// SPDX-License-Identifier: Apache-2.0
// metrics.csv: one row a step and one row an evaluation's metric, for pandas and spreadsheets. A sink of the EventBus;
// called on one thread at a time. The columns are described in docs/formats.md.
#pragma once

#include <filesystem>
#include <memory>

#include "stoker/core/events.h"

namespace stoker::io {

class MetricsCsv final : public core::EventSink {
 public:
  // run_folder: must exist. Continues a metrics.csv that is there (cut_metrics() it first on a resume); IoError if it
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
