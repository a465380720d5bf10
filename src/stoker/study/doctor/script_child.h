// SPDX-License-Identifier: Apache-2.0
// A command that runs as a child with our standard input, output and error. It has a process group of its own, which
// gets the terminal if we have it: so Ctrl-C reaches the child alone, and a signal that was sent to our group reaches
// it once, from us. Ctrl-Z stops both. Used by
// watch_script, try_cures and apply_cures. For the main thread; one child at a time.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stoker::study {

class FolderLayer;

// The variables of this process: "NAME=VALUE".
[[nodiscard]] std::vector<std::string> own_environment();

// A child that nobody talks to.
struct Apart {
  std::filesystem::path output;        // a new file for what it prints; it has no input
  const FolderLayer* layer = nullptr;  // that it is put under
};

class ScriptChild {
 public:
  // environment: "NAME=VALUE". Blocks signals of this thread until the object is gone. ConfigError if the command does
  // not exist or is no program; IoError.
  ScriptChild(const std::vector<std::string>& command, const std::vector<std::string>& environment,
              const Apart* apart = nullptr);
  ~ScriptChild();
  ScriptChild(const ScriptChild&) = delete;
  ScriptChild& operator=(const ScriptChild&) = delete;

  // Waits that long, or until the child has ended: then its exit code, or 128 + the signal that ended it.
  [[nodiscard]] std::optional<int> wait(double seconds);

  // Sends a signal to the child and the processes that it started.
  void send(int signal) const { ::kill(-child_, signal); }
  // The last signal that we got and passed on; 0: none.
  [[nodiscard]] int passed() const { return passed_; }

 private:
  struct Start {
    std::vector<char*> words, variables;
    int output, pipe;
    const FolderLayer* layer;
  };
  [[noreturn]] void become(const Start& start) const;
  void take_terminal(pid_t group) const;  // for the group, if there is a terminal that we had
  void stop_with_child() const;           // until somebody continues us

  sigset_t before_{}, ours_{};
  pid_t child_ = -1;
  int passed_ = 0;
  bool has_terminal_ = false;
};

}  // namespace stoker::study
