// SPDX-License-Identifier: Apache-2.0
// A kind of task defined by a program, from any Trainable and any source of batches: its runs have a plan, timed
// trials, checkpoints, exact resume and a report like the runs of the built-in kinds. On one thread, before the first
// request.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stoker/core/batch_source.h"
#include "stoker/core/trainable.h"
#include "stoker/tasks/sample_source.h"
#include "stoker/tasks/task.h"

namespace stoker::tasks {

struct OwnTask {
  std::string name;  // selected by task=name; also the name of its only model
  // Equal seeds give equal weights.
  std::function<std::unique_ptr<core::Trainable>(std::uint64_t seed)> model;
  // The data of all splits by sample. Or else by batch, with the two functions below.
  SampleFunction sample = {};
  // The batches of the training split, from request.start on, epoch after epoch: each with its position and
  // request.batch samples. The last one of an epoch may be smaller, and is left out if request.drop_tail is set. Order
  // and random draws must depend only on the request's seed and the position: then runs repeat, and resume where they
  // stopped. With several ranks, too, these are the whole batches: each rank takes its part of them. On a GPU a source
  // works on a thread of its own. DataError, at a batch, if these rules are broken.
  std::function<std::unique_ptr<core::BatchSource>(const BatchRequest& request)> training = {};
  // The batches of another split, of at most request.batch samples, the same in each epoch. Empty if there is no other
  // split.
  std::function<std::unique_ptr<core::BatchSource>(Split split, const BatchRequest& request)> evaluation = {};
  std::int64_t train_samples = 0, val_samples = 0, test_samples = 0;
  // Whether the model couples the samples of a batch (batch norm): it cannot train on one sample.
  bool couples_samples = false;
  // Defaults of the engine's options that replace the usual ones: {"lr", "0.1"}. ConfigError, when a run is prepared,
  // for another key.
  std::vector<std::pair<std::string, std::string>> defaults = {};
};

// Adds the kind. Its sources provide the data: a request may use any word for it (Request::data). ConfigError for a
// name that is in use, a missing function, data both by sample and by batch, or a split without samples or source.
void add_own_task(OwnTask own);

}  // namespace stoker::tasks
