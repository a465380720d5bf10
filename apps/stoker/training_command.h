// SPDX-License-Identifier: Apache-2.0
// What `stoker train`, `plan` and `resume` share: their words, the request these make, and running a job with its
// progress on standard output. One thread.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "stoker/job/job.h"

namespace stoker::app {

struct TrainingWords {
  std::string path;  // data for train and plan, a run folder for resume
  std::vector<std::string> assignments;
  std::string config;
  bool quiet = false, json = false;
  [[nodiscard]] bool silent() const { return quiet || json; }
};

void add_settings(CLI::App& command, TrainingWords& words);
void add_silence(CLI::App& command, TrainingWords& words);

// A first word without '=' is the data; the other words are settings.
[[nodiscard]] job::Request request_of(const TrainingWords& words);

// Prints lines as they come, or nothing.
[[nodiscard]] job::Say say_unless(bool silent);

// Trains, with facts before, progress while and figures after; Ctrl-C stops it. The exit code.
int run_job(job::Job job, const TrainingWords& words);

}  // namespace stoker::app
