// SPDX-License-Identifier: Apache-2.0
// microbatch=auto and batch=auto: searches the samples per forward pass and puts them into the plan. Called by set_up()
// before step 1; the result is shown by `stoker tune`. One thread.
#pragma once

#include <cstdint>
#include <string>

#include "stoker/job/request.h"
#include "stoker/memory/batch_finder.h"
#include "stoker/train/resolve.h"

namespace stoker::job {

struct Setup;

// The search of a set-up, and what it decided.
struct PassChoice {
  bool sets_batch = false;  // batch=auto: a pass is the batch
  memory::Found found;
  std::int64_t batch = 0;   // samples of the batch before the choice, on this rank
  std::int64_t held = -1;   // bytes that tensors of the run hold between steps; -1: not known
  std::int64_t limit = -1;  // bytes that a pass may need beyond that; -1: not known
  std::string lr_note;      // batch=auto: what happens to the learning rate
};

// Whether the request asks for a search.
[[nodiscard]] bool searches_passes(const train::Options& options);
// ConfigError if options contradict a search that is asked for, that of recompute=auto included.
void check_search(const train::Options& options);

// Sets the plan's microbatch, or batch and microbatch. OutOfMemory, with what to do, if not even the smallest pass
// fits.
[[nodiscard]] PassChoice choose_passes(Setup& setup, const Request& request, const train::Facts& facts);

}  // namespace stoker::job
