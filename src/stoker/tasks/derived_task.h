// SPDX-License-Identifier: Apache-2.0
// A kind of task like another one but for its model or its training batches: how a program brings a loss, a metric or
// an augmentation of its own to whole runs, with their checkpoints, logs and reports. On one thread, before the first
// request.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "stoker/tasks/task.h"

namespace stoker::tasks {

// Each is handed the base's and gives back what stands in its place; empty: the base's.
struct TaskChanges {
  // The model, each time one is made, and each time one is restored from a checkpoint.
  std::function<std::unique_ptr<Model>(std::unique_ptr<Model>)> model = {};
  // The training split's batches. Whatever is drawn for them must follow from the request's seed and the batch's
  // indices and position alone (base/counter_rng.h): then runs repeat, and resume where they stopped.
  std::function<std::unique_ptr<core::BatchSource>(std::unique_ptr<core::BatchSource>, const BatchRequest&)>
      training_batches = {};
};

// Adds the kind `name`, which `task=name` asks for; data is never recognised as it. Its checkpoints say `name`:
// programs that add it can open them. After add_model() of the networks that it is to take. ConfigError for a name that
// is taken, or a base that is not known.
void derive_task(std::string name, const std::string& base, TaskChanges changes);

}  // namespace stoker::tasks
