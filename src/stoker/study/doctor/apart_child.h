// SPDX-License-Identifier: Apache-2.0
// A command that runs as a child to which nobody talks: without input and terminal, with its output in a file, perhaps
// under a layer over its folder. When it has ended, nothing that it started is left. Used by try_cures and apply_cures.
// For the main thread of a process that has no other children.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stoker::study {

class FolderLayer;

// While it lives, a signal that would end this process waits here instead.
class HeldSignals {
 public:
  // stop: as good as one of them, where other threads may receive them. Null: none.
  explicit HeldSignals(const std::atomic<bool>* stop = nullptr);
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  // Whether SIGINT, SIGTERM, SIGHUP or SIGQUIT came, or stop is set.
  [[nodiscard]] bool came();
  // Waits for one of them, or for a child that changes, that many seconds.
  void wait(double seconds);
  // Unblocks them, as they were before: for a child.
  void release() const;

 private:
  sigset_t before_{}, ending_{}, ours_{};
  const std::atomic<bool>* stop_;
  bool came_ = false;
};

class ApartChild {
 public:
  // environment: "NAME=VALUE". output: a new file. layer: null for none. ConfigError if the command does not exist or
  // is no program; IoError.
  ApartChild(HeldSignals& signals, const std::vector<std::string>& command, const std::vector<std::string>& environment,
             const std::filesystem::path& output, const FolderLayer* layer = nullptr);
  ~ApartChild();  // ends it at once
  ApartChild(const ApartChild&) = delete;
  ApartChild& operator=(const ApartChild&) = delete;

  // Waits that long, or until the child has ended, or a signal came: its exit code, or 128 + the signal that ended it.
  [[nodiscard]] std::optional<int> wait(double seconds);
  // As Ctrl-C does, and then less kindly. What it started goes, too.
  void end();

 private:
  struct Start {
    std::vector<char*> words, variables;
    int output, pipe;
    const FolderLayer* layer;
  };
  [[noreturn]] void become(const Start& start) const;
  void kill_all();

  HeldSignals& signals_;
  pid_t child_ = -1;
  std::optional<int> code_;
};

}  // namespace stoker::study
