// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/run_folder.h"

#include <algorithm>
#include <array>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "job.run_folder";

// True if this call created it; false if it exists. IoError otherwise.
bool make_folder(const fs::path& path) {
  std::error_code error;
  if (path.has_parent_path()) {
    fs::create_directories(path.parent_path(), error);
  }
  const bool made = !error && fs::create_directory(path, error);
  if (error) {
    fail<IoError>(kWhere, "{}: the run folder cannot be created: {}; set run=PATH to a writable place",
                  printable(path.native()), error.message());
  }
  return made;
}

// Whether it holds nothing but what a run writes before its plan.
bool is_unfinished(const fs::path& path) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().native();
    if (!std::ranges::any_of(std::array{"config.toml", "plan.json.tmp-", "artifacts", "started_by"},
                             [&](const char* ours) { return name.starts_with(ours); })) {
      return false;
    }
  }
  return !error;
}

}  // namespace

fs::path RunFolder::path_of(const std::string& name_or_path, const fs::path& runs) {
  if (name_or_path.find('/') != std::string::npos) {
    return name_or_path;
  }
  if (name_or_path.empty() || name_or_path == "." || name_or_path == "..") {
    fail<ConfigError>(kWhere, "run must be a name or a path, got \"{}\"", name_or_path);
  }
  return runs / name_or_path;
}

RunFolder RunFolder::create(const std::string& name_or_path, const fs::path& runs, bool take_unfinished) {
  const fs::path path = path_of(name_or_path, runs);
  if (make_folder(path) || (take_unfinished && is_unfinished(path))) {
    return RunFolder(path);
  }
  if (name_or_path.find('/') != std::string::npos) {
    if (std::error_code error; !fs::is_empty(path, error)) {
      fail<ConfigError>(kWhere, "{}: is in use; give another run=, or `stoker resume {}`", printable(path.native()),
                        printable(path.native()));
    }
    return RunFolder(path);
  }
  for (int number = 2;; ++number) {
    const fs::path other = runs / fmt::format("{}-{}", name_or_path, number);
    if (make_folder(other)) {
      return RunFolder(other);
    }
  }
}

RunFolder RunFolder::open(const fs::path& path) {
  if (std::error_code error; !fs::exists(path, error)) {
    fail<ConfigError>(kWhere, "{}: the run folder does not exist", printable(path.native()));
  }
  if (!is_run(path)) {
    fail<ConfigError>(kWhere, "{}: is not a run folder (plan.json or config.toml is missing)",
                      printable(path.native()));
  }
  return RunFolder(path);
}

RunFolder RunFolder::of_rank(int rank) const {
  if (rank == 0) {
    return *this;
  }
  const fs::path path = path_ / "ranks" / std::to_string(rank);
  make_folder(path);
  return RunFolder(path);
}

bool RunFolder::is_run(const fs::path& path) {
  const RunFolder run(path);
  std::error_code error;
  return fs::is_regular_file(run.plan(), error) && fs::is_regular_file(run.config(), error);
}

std::vector<std::string> RunFolder::runs_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (is_run(entry.path())) {
      names.push_back(entry.path().filename().native());
    }
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace stoker::job
