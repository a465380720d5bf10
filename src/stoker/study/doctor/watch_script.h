// SPDX-License-Identifier: Apache-2.0
// Runs somebody else's training script, unmodified, and says why it is slow: once while it runs, and when it has ended.
// Called by `stoker doctor -- COMMAND`. For the main thread: it handles signals.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "stoker/study/doctor/report.h"

namespace stoker::study {

struct WatchScriptOptions {
  std::vector<std::string> command;  // "python", "train.py", ...
  std::filesystem::path out;         // where verdicts go; empty: to say()
  std::filesystem::path keep;        // a new folder for the records; empty: they are removed at the end
  bool json = false;
  // What the terminal shows: verdicts, unless `out` is set, and what went wrong here. Lines end with a newline.
  std::function<void(const std::string&)> say;
  std::function<void(const Examined&)> at_end = [](const Examined&) {};  // with the last diagnosis
};

// The script's exit code, or 128 + the signal that ended it. Standard input, output and error are the script's own;
// signals that we get go to it. ConfigError if the command does not exist, or if `keep` does; IoError.
[[nodiscard]] int watch_script(const WatchScriptOptions& options);

}  // namespace stoker::study
