// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/continued_run.h"

#include <set>
#include <string_view>
#include <system_error>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/job/saved_plan.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "job";
constexpr const char* kStartFile = "started_by";

[[noreturn]] void refuse(const fs::path& run, const std::string& difference) {
  fail<ConfigError>(kWhere, "{}: was begun by another command, with {}; give that one again, or another run=",
                    printable(run.native()), difference);
}

std::string text_of(const train::Options& options, const std::string& key) {
  const train::Options::Given* const given = options.find(key);
  return options.is_auto(key) ? "auto" : given != nullptr ? given->value : "";
}

std::string words(const std::string& key, const std::string& value) {
  return value.empty() ? fmt::format("no {}=", key) : fmt::format("{}={}", key, printable(value));
}

fs::path whole(const fs::path& path) { return fs::absolute(path).lexically_normal(); }

// What differs from the command that began the run, where a resume may change it.
std::vector<std::string> changes_of(const Request& request, const fs::path& run) {
  const Request before = make_request(RunFolder::open(run).config(), {});
  const Request now = with_whole_paths(request);
  if (whole(now.data) != whole(before.data)) {
    refuse(run, words("data", before.data.native()));
  }
  if (now.plan_file.empty() != before.plan_file.empty() ||
      (!now.plan_file.empty() && whole(now.plan_file) != whole(before.plan_file))) {
    refuse(run, words("plan", before.plan_file.native()));
  }
  std::set<std::string> keys(now.options.autos().begin(), now.options.autos().end());
  keys.insert(before.options.autos().begin(), before.options.autos().end());
  for (const train::Options* options : {&now.options, &before.options}) {
    for (const auto& [key, given] : options->all()) {
      keys.insert(key);
    }
  }
  std::vector<std::string> changes;
  for (const std::string& key : keys) {
    const std::string asked = text_of(now.options, key), had = text_of(before.options, key);
    if (asked == had || key == "ranks") {  // there are as many ranks as were started
      continue;
    }
    if (!may_change(key)) {
      refuse(run, fmt::format("{}; now with {}", words(key, had), words(key, asked)));
    }
    if (!asked.empty()) {
      changes.push_back(fmt::format("{}={}", key, asked));
    }
  }
  return changes;
}

bool has_start(const fs::path& run, const std::string& start) {
  try {
    return read_text(run / kStartFile) == start;
  } catch (const DataError&) {  // of another starter, or of none
    return false;
  }
}

std::optional<fs::path> newest_with(const std::string& start) {
  std::optional<fs::path> newest;
  fs::file_time_type when;
  for (const std::string& name : RunFolder::runs_in("runs")) {
    const fs::path run = fs::path("runs") / name;
    std::error_code error;
    const fs::file_time_type written = fs::last_write_time(run / kStartFile, error);
    if (!error && (!newest || written > when) && has_start(run, start)) {
      newest = run;
      when = written;
    }
  }
  return newest;
}

std::optional<fs::path> existing_run(const Request& request) {
  if (!request.run.empty()) {
    const fs::path path = RunFolder::path_of(request.run);
    return RunFolder::is_run(path) ? std::optional(path) : std::nullopt;
  }
  return request.start.repeated && !request.start.id.empty() ? newest_with(request.start.id) : std::nullopt;
}

}  // namespace

std::optional<ContinuedRun> run_to_continue(const Request& request) {
  if (!request.start.repeats) {
    return std::nullopt;
  }
  const std::optional<fs::path> run = existing_run(request);
  return run ? std::optional(ContinuedRun{*run, changes_of(request, *run)}) : std::nullopt;
}

void record_start(const RunFolder& run, const Request& request) {
  if (!request.start.id.empty()) {
    write_file_atomically(run.path() / kStartFile, request.start.id);
  }
}

}  // namespace stoker::job
