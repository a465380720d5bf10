// SPDX-License-Identifier: Apache-2.0
// Shared by `stoker train`, `plan` and `resume`: their arguments, the request made of them, and running a job with
// progress on standard output. One thread.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "commands.h"
#include "stoker/job/job.h"
#include "stoker/job/ranks.h"

namespace stoker::app {

struct TrainingWords {
  std::string path;  // data for train and plan, a run folder for resume
  std::vector<std::string> assignments;
  std::string config;
  bool quiet = false, json = false;
  bool other_rank = false;  // rank 0 speaks to people
  int stopped = kStopped;   // the exit code after a requested stop
  [[nodiscard]] bool silent() const { return quiet || json || other_rank; }
};

void add_options(CLI::App& command, TrainingWords& words);
void add_silence(CLI::App& command, TrainingWords& words);

// A first word without '=' is the data; all other words are options.
[[nodiscard]] job::Request request_of(const TrainingWords& words);

// Prints each line at once, or nothing if silent.
[[nodiscard]] job::Say say_unless(bool silent);

// This process's part: which rank speaks, and how a stop ends. A starter that starts all ranks again unless they exit
// For remarks beside the output.
[[nodiscard]] job::Say to_stderr();
// with code 0 must not do so after a stop.
void take_part(TrainingWords& words, const job::Ranks& ranks);

// Trains and prints facts before, progress during and metrics after the training. Ctrl-C stops it. Of a new run with
// apply=doctor, what the doctor proposes after the first seconds is tried, and kept where it gains. Returns the exit
// code.
int run_job(job::Job job, const TrainingWords& words, bool is_new);

}  // namespace stoker::app
