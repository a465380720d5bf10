// SPDX-License-Identifier: Apache-2.0
// A kind of task of a program's own, from any Trainable and any source of batches: its runs have a plan, timed trials,
// checkpoints, exact resume and a report like those of the built-in kinds. On one thread, before the first request.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stoker/core/batch_source.h"
#include "stoker/core/trainable.h"
#include "stoker/tasks/task.h"

namespace stoker::tasks {

struct OwnTask {
  std::string name;  // asked for by task=name, and the name of its one model
  // Equal seeds give equal weights.
  std::function<std::unique_ptr<core::Trainable>(std::uint64_t seed)> model;
  // The training split's batches, of request.batch samples, from request.start on, epoch after epoch. Order and draws
  // must follow from the request's seed and the position alone: then runs repeat, and resume where they stopped.
  std::function<std::unique_ptr<core::BatchSource>(const BatchRequest& request)> training;
  // One epoch of another split, in batches of at most request.batch samples. Empty where there is no other split.
  std::function<std::unique_ptr<core::BatchSource>(Split split, const BatchRequest& request)> evaluation = {};
  std::int64_t train_samples = 0, val_samples = 0, test_samples = 0;
  // Defaults of the engine's options beside the usual ones: {"lr", "0.1"}.
  std::vector<std::pair<std::string, std::string>> defaults = {};
};

// Adds the kind. Its data is what the sources give: a request names it by any word (Request::data). ConfigError for a
// name that is taken, a missing function, or a split without samples or source.
void add_own_task(OwnTask own);

}  // namespace stoker::tasks
