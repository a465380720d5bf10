// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/loggers/cut_metrics.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/io/loggers/log_file.h"

namespace stoker::io {
namespace {

// A row's step, if it has one.
using StepOf = std::function<std::optional<std::int64_t>(std::string_view)>;

std::optional<std::int64_t> csv_step(std::string_view line) {
  const std::size_t first = line.find(',');
  const std::size_t second = first == line.npos ? line.npos : line.find(',', first + 1);
  if (second == line.npos) {
    return std::nullopt;
  }
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(line.data() + second + 1, line.data() + line.size(), step);
  return error == std::errc() ? std::optional(step) : std::nullopt;  // the header has a word there
}

std::optional<std::int64_t> jsonl_step(std::string_view line) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  const auto found = json.is_object() ? json.find("step") : json.end();
  return json.is_object() && found != json.end() && found->is_number_integer()
             ? std::optional(found->get<std::int64_t>())
             : std::nullopt;
}

// Keeps the rows up to step. A row without one (a finding) stays if no later step was logged before it.
void cut(const std::filesystem::path& path, std::int64_t step, const StepOf& step_of) {
  if (!std::filesystem::exists(path)) {
    return;
  }
  write_file_atomically(path, [&](FileWriter& writer) {
    bool past = false;
    std::string kept;
    each_line(path, [&](std::string_view line) {
      const std::optional<std::int64_t> found = step_of(line);
      past |= found && *found > step;
      const bool keep = (found ? *found <= step : !past) && !line.starts_with(R"({"event":"run_finished")");
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

void cut_metrics(const std::filesystem::path& run_folder, std::int64_t step) {
  cut(run_folder / "metrics.csv", step, csv_step);
  cut(run_folder / "metrics.jsonl", step, jsonl_step);
}

}  // namespace stoker::io
