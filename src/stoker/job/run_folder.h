// SPDX-License-Identifier: Apache-2.0
// The folder of one run and its files: config.toml, plan.json, metrics.csv, metrics.jsonl, checkpoints/. Created once
// by Job; read by resume, eval, predict, export and info.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stoker::job {

class RunFolder {
 public:
  // A new folder. A name becomes runs/<name>, or runs/<name>-2, -3, ... if that exists; a path (with a '/') is used
  // unchanged and must be missing or empty. IoError if it cannot be created, ConfigError if the path is in use.
  // take_unfinished: a folder in which a run ended before its plan was written is used, too.
  static RunFolder create(const std::string& name_or_path, const std::filesystem::path& runs = "runs",
                          bool take_unfinished = false);
  // runs/<name>, or the path itself. ConfigError for a name that is none.
  [[nodiscard]] static std::filesystem::path path_of(const std::string& name_or_path,
                                                     const std::filesystem::path& runs = "runs");
  // An existing one; ConfigError if the folder is not a run.
  static RunFolder open(const std::filesystem::path& path);

  // Whether open() would accept it.
  [[nodiscard]] static bool is_run(const std::filesystem::path& path);
  // Names of the runs in a folder, in order; empty if it is not a folder.
  [[nodiscard]] static std::vector<std::string> runs_in(const std::filesystem::path& folder);

  // The folder in which one rank keeps its own logs: the run's for rank 0, else ranks/N in it, which is made if it is
  // missing. IoError if it cannot be.
  [[nodiscard]] RunFolder of_rank(int rank) const;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path config() const { return path_ / "config.toml"; }
  [[nodiscard]] std::filesystem::path plan() const { return path_ / "plan.json"; }
  [[nodiscard]] std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }

 private:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace stoker::job
