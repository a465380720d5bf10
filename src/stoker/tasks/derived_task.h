// SPDX-License-Identifier: Apache-2.0
// A kind of task like another one, except for its model or its training batches: so a program adds its own loss, metric
// or augmentation to whole runs, with their checkpoints, logs and reports. On one thread, before the first request.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "stoker/tasks/task.h"

namespace stoker::tasks {

// Each receives the base's object and returns its replacement; empty: the base's.
struct TaskChanges {
  // The model, each time one is made or restored from a checkpoint.
  std::function<std::unique_ptr<Model>(std::unique_ptr<Model>)> model = {};
  // The batches of the training split. All random draws must depend only on the request's seed and on the batch's
  // indices and position (base/counter_rng.h): then runs repeat, and resume where they stopped.
  std::function<std::unique_ptr<core::BatchSource>(std::unique_ptr<core::BatchSource>, const BatchRequest&)>
      training_batches = {};
};

// Adds the kind `name`, which `task=name` selects; data is never recognised as it. Its checkpoints contain `name`:
// programs that add it can open them. Call it after add_model() of the networks that it uses. ConfigError for a name
// that is in use, or an unknown base.
void derive_task(std::string name, const std::string& base, TaskChanges changes);

}  // namespace stoker::tasks
