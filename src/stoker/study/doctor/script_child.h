// SPDX-License-Identifier: Apache-2.0
// A command that runs as a child with our standard input, output and error. Signals that ask us to end go to the child,
// and we end after it. Used by watch_script. For the main thread; one child at a time.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

namespace stoker::study {

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
  sigset_t before_{}, ours_{};
  pid_t child_ = -1;
};

}  // namespace stoker::study
