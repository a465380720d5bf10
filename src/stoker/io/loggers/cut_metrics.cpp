// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/loggers/cut_metrics.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/io/loggers/log_file.h"

namespace stoker::io {
namespace {

// The subject of a row; no step for a header or a finding.
struct Row {
  std::optional<std::int64_t> step;
  bool evaluation = false;
  bool test = false;  // on the test split
};

// kind,epoch,step,samples,seconds,data_wait,lr,memory_bytes,split,...
Row csv_row(std::string_view line) {
  std::vector<std::string_view> cells;
  for (std::size_t start = 0; start <= line.size() && cells.size() < 9;) {
    const std::size_t comma = std::min(line.find(',', start), line.size());
    cells.push_back(line.substr(start, comma - start));
    start = comma + 1;
  }
  Row row;
  std::int64_t step = 0;
  if (cells.size() == 9 &&
      std::from_chars(cells[2].data(), cells[2].data() + cells[2].size(), step).ec == std::errc()) {
    row = {step, cells[0] == "eval", cells[8] == "test"};
  }
  return row;
}

Row jsonl_row(std::string_view line) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  Row row;
  if (json.is_object() && json.contains("step") && json["step"].is_number_integer()) {
    row.step = json["step"].get<std::int64_t>();
    row.evaluation = json.value("event", "") == "evaluated";
    row.test = row.evaluation && json.value("split", "") == "test";
  }
  return row;
}

// Keeps the rows that cut_metrics() promises. A row without a step stays unless a later step was logged before it.
void cut(const std::filesystem::path& path, std::int64_t step, std::int64_t evaluated_step,
         const std::function<Row(std::string_view)>& row_of) {
  if (!std::filesystem::exists(path)) {
    return;
  }
  write_file_atomically(path, [&](FileWriter& writer) {
    bool past = false;
    std::string kept;
    each_line(path, [&](std::string_view line) {
      const Row row = row_of(line);
      past |= row.step && *row.step > step;
      const std::int64_t last = row.evaluation ? evaluated_step : step;
      const bool ends = row.test || line.starts_with(R"({"event":"run_finished")");
      const bool keep = (row.step ? *row.step <= last : !past) && !ends;
      if (keep) {
        kept.append(line).push_back('\n');
      }
      if (kept.size() > (std::size_t{1} << 20)) {
        writer.write(as_bytes(kept));
        kept.clear();
      }
      return true;
    });
    writer.write(as_bytes(kept));
  });
}

}  // namespace

void cut_metrics(const std::filesystem::path& run_folder, std::int64_t step, std::int64_t evaluated_step) {
  cut(run_folder / "metrics.csv", step, evaluated_step, csv_row);
  cut(run_folder / "metrics.jsonl", step, evaluated_step, jsonl_row);
}

}  // namespace stoker::io
