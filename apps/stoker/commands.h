// SPDX-License-Identifier: Apache-2.0
// The subcommands: each adds itself to the application and, when chosen, runs and sets the exit code.
// Exit codes: 0 done, 2 usage or config, 65 data, 71 device, 74 I/O, 75 stopped (a training is resumable).
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

namespace stoker::app {

inline constexpr int kDone = 0, kUsage = 2, kDataError = 65, kDeviceError = 71, kIoError = 74, kStopped = 75,
                     kFailed = 1;

inline constexpr const char* kOptions = "options";  // the words key=value of a command that takes them

void add_train(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);
void add_tune(CLI::App& app, int& exit_code);
void add_resume(CLI::App& app, int& exit_code);
void add_eval(CLI::App& app, int& exit_code);
void add_predict(CLI::App& app, int& exit_code);
void add_generate(CLI::App& app, int& exit_code);
void add_export(CLI::App& app, int& exit_code);
void add_report(CLI::App& app, int& exit_code);
void add_info(CLI::App& app, int& exit_code);
void add_memory(CLI::App& app, int& exit_code);
void add_profile(CLI::App& app, int& exit_code);
void add_inspect(CLI::App& app, int& exit_code);
// script: what follows "--" on the command line; none if nothing does.
void add_doctor(CLI::App& app, int& exit_code, const std::optional<std::vector<std::string>>& script);
void add_trace(CLI::App& app, int& exit_code);
void add_ps(CLI::App& app, int& exit_code);
void add_top(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_complete(CLI::App& app, int& exit_code);

// A number in a range; hides CLI11's own description from the help.
template <typename Number>
CLI::Validator in_range(Number low, Number high) {
  CLI::Validator range = CLI::Range(low, high);
  range.description("");
  return range;
}

// Throws IoError if the file cannot be written, before minutes are spent on its content.
void check_target(const char* where, const std::string& file);

// Set by the first SIGINT or SIGTERM, which prints text unless it is empty. The second signal ends the process at once.
const std::atomic<bool>& stop_on_signal(const char* text = "stopping and saving; press again to stop at once");
// For the time before stop_on_signal(), when there is nothing to save: a signal prints text and exits with code.
void end_on_signal(const char* text, int code);
// A closed output pipe makes writes fail instead of ending the process, so training continues.
void survive_closed_pipes();

}  // namespace stoker::app
