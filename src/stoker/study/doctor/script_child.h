// SPDX-License-Identifier: Apache-2.0
// A command that runs as a child with our standard input, output and error. It has a process group of its own, which
// gets the terminal if we have it: so Ctrl-C reaches the child alone, and a signal that was sent to our group reaches
// it once, from us. Ctrl-Z stops both. Used by watch_script. For the main thread; one child at a time.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

namespace stoker::study {

// The variables of this process: "NAME=VALUE".
[[nodiscard]] std::vector<std::string> own_environment();
// For execve(): as long as the words live, ended by a null pointer.
[[nodiscard]] std::vector<char*> pointers_to(const std::vector<std::string>& words);

class ScriptChild {
 public:
  // environment: "NAME=VALUE". Blocks signals of this thread until the object is gone. ConfigError if the command does
  // not exist or is no program.
  ScriptChild(const std::vector<std::string>& command, const std::vector<std::string>& environment);
  ~ScriptChild();
  ScriptChild(const ScriptChild&) = delete;
  ScriptChild& operator=(const ScriptChild&) = delete;

  // Waits that long, or until the child has ended: then its exit code, or 128 + the signal that ended it.
  [[nodiscard]] std::optional<int> wait(double seconds);

 private:
  [[noreturn]] void become(const std::vector<char*>& words, const std::vector<char*>& variables, int pipe) const;
  void take_terminal(pid_t group) const;  // for the group, if there is a terminal that we had
  void stop_with_child() const;           // until somebody continues us

  sigset_t before_{}, ours_{};
  pid_t child_ = -1;
  bool has_terminal_ = false;
};

}  // namespace stoker::study
