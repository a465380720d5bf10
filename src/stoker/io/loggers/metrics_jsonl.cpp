// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/loggers/metrics_jsonl.h"

#include <set>

#include "stoker/io/event_json.h"
#include "stoker/io/loggers/log_file.h"

namespace stoker::io {

struct MetricsJsonl::State {
  explicit State(const std::filesystem::path& path) : file(path) {
    each_line(path, [&](std::string_view line) {
      started = true;
      if (line.starts_with(R"({"event":"finding")")) {
        findings.emplace(line);
      }
      return true;
    });
  }

  LogFile file;
  std::vector<std::string> scalars;
  bool started = false;            // the file already has run_started
  std::set<std::string> findings;  // lines in the file
};

MetricsJsonl::MetricsJsonl(const std::filesystem::path& run_folder)
    : state_(std::make_unique<State>(run_folder / "metrics.jsonl")) {}

MetricsJsonl::~MetricsJsonl() = default;

void MetricsJsonl::on(const core::Event& event) {
  const auto* start = std::get_if<core::RunStarted>(&event);
  if (start != nullptr) {
    state_->scalars = start->scalars;
  }
  const bool repeated = start != nullptr && std::exchange(state_->started, true);
  if (repeated || std::holds_alternative<core::Evaluating>(event) ||
      std::holds_alternative<core::WeightHistograms>(event)) {
    return;
  }
  const std::string line = event_json(event, state_->scalars, /*place=*/false);
  if (std::holds_alternative<core::Finding>(event) && !state_->findings.insert(line).second) {
    return;
  }
  state_->file.line(line);
}

void MetricsJsonl::flush() { state_->file.flush(); }

}  // namespace stoker::io
