// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/run_folder.h"

#include <algorithm>

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

}  // namespace

RunFolder RunFolder::create(const std::string& name_or_path, const fs::path& runs) {
  if (name_or_path.find('/') != std::string::npos) {
    const fs::path path(name_or_path);
    std::error_code error;
    if (!make_folder(path) && !fs::is_empty(path, error)) {
      fail<ConfigError>(kWhere, "{}: is in use; give another run=, or `stoker resume {}`", printable(path.native()),
                        printable(path.native()));
    }
    return RunFolder(path);
  }
  if (name_or_path.empty() || name_or_path == "." || name_or_path == "..") {
    fail<ConfigError>(kWhere, "run must be a name or a path, got \"{}\"", name_or_path);
  }
  for (int number = 1;; ++number) {
    const fs::path path = runs / (number == 1 ? name_or_path : fmt::format("{}-{}", name_or_path, number));
    if (make_folder(path)) {
      return RunFolder(path);
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
