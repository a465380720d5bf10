// SPDX-License-Identifier: Apache-2.0
// What `stoker tune` does: sets up a run, searches the samples per forward pass, and shows the search as a table with
// the reason for each choice. Trains nothing and writes no file. One thread.
#pragma once

#include <string>

#include "stoker/job/passes.h"
#include "stoker/job/request.h"
#include "stoker/train/plan.h"

namespace stoker::job {

struct Tuned {
  std::string title;  // the model, the data and the device
  std::string data;   // as the user wrote it
  std::string asked;  // the other options and a measured precision, as words of a command, each with a space in front
  std::int64_t memory_limit = 0;
  train::Plan plan;  // with the choice
  PassChoice passes;
};

// Searches the microbatch, unless the request says batch=auto. Errors as Job::prepare(); ConfigError if the request
// sets microbatch, recompute=auto or optimizer_in_backward.
[[nodiscard]] Tuned tune(Request request, const Say& say);

// For a terminal: a row with a bar for each probe, then the choices.
[[nodiscard]] std::string tune_text(const Tuned& tuned);
// docs/formats.md describes it.
[[nodiscard]] std::string tune_json(const Tuned& tuned);

}  // namespace stoker::job
