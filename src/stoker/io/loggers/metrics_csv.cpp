// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/loggers/metrics_csv.h"

#include <string_view>

#include "stoker/base/csv_cell.h"
#include "stoker/base/error.h"
#include "stoker/base/fmt.h"
#include "stoker/base/plain_nan.h"
#include "stoker/io/loggers/log_file.h"

namespace stoker::io {
namespace {

// A stable format: add new columns only at the end. kind, epoch and step stay first: cut_metrics() relies on it.
constexpr std::string_view kColumns = "kind,epoch,step,samples,seconds,data_wait,lr,memory_bytes,split,metric,value";

std::string header_of(const std::vector<std::string>& scalars) {
  std::string header(kColumns);
  for (const std::string& name : scalars) {
    header += ',' + csv_cell(name);
  }
  return header;
}

std::string step_row(const core::StepFinished& step, std::size_t scalars) {
  std::string row = fmt::format("step,{},{},{},{},{},{},", step.position.epoch, step.step, step.samples, step.seconds,
                                step.data_wait_seconds, step.lr);
  if (step.memory_bytes >= 0) {
    row += fmt::format("{}", step.memory_bytes);
  }
  row += ",,,";
  const core::Scalars values = step.scalars ? step.scalars->read() : core::Scalars{};
  for (std::size_t i = 0; i < scalars; ++i) {
    row += i < values.count ? fmt::format(",{}", plain_nan(values.values[i])) : ",";
  }
  return row;
}

}  // namespace

struct MetricsCsv::State {
  explicit State(const std::filesystem::path& place) : path(place), file(place) {}

  // Writes the header of a new file, or checks that an existing file has the columns of this run.
  void begin(const std::vector<std::string>& names) {
    std::string found;
    each_line(path, [&](std::string_view line) {
      found = line;
      return false;
    });
    const std::string header = header_of(names);
    if (found.empty()) {
      file.line(header);
    } else if (found != header) {
      fail<IoError>("io.metrics_csv",
                    "{}: has the columns \"{}\", but this run has \"{}\"; move the file away or set run=",
                    printable(path.native()), printable(found), printable(header));
    }
    scalars = names.size();
    begun = true;
  }
  void row(const core::Evaluated& event) {
    for (const core::MetricValue& metric : event.metrics) {
      file.line(fmt::format("eval,{},{},,{},,,,{},{},{}{}", event.position.epoch, event.step, event.seconds,
                            csv_cell(event.split), csv_cell(metric.name), plain_nan(metric.value),
                            std::string(scalars, ',')));
    }
  }

  std::filesystem::path path;
  LogFile file;
  std::size_t scalars = 0;
  bool begun = false;
};

MetricsCsv::MetricsCsv(const std::filesystem::path& run_folder)
    : state_(std::make_unique<State>(run_folder / "metrics.csv")) {}

MetricsCsv::~MetricsCsv() = default;

void MetricsCsv::on(const core::Event& event) {
  if (const auto* start = std::get_if<core::RunStarted>(&event)) {
    if (!state_->begun) {
      state_->begin(start->scalars);
    }
  } else if (!state_->begun) {
    return;  // events before the start of the run have no columns and no row
  } else if (const auto* step = std::get_if<core::StepFinished>(&event)) {
    state_->file.line(step_row(*step, state_->scalars));
  } else if (const auto* evaluated = std::get_if<core::Evaluated>(&event)) {
    state_->row(*evaluated);
  }
}

void MetricsCsv::flush() { state_->file.flush(); }

}  // namespace stoker::io
