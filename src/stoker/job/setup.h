// SPDX-License-Identifier: Apache-2.0
// Builds everything that a run needs from a request: task, data, plan, model, sources on the device. One thread at a
// time.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stoker/core/batch_source.h"
#include "stoker/core/communicator.h"
#include "stoker/job/model_card.h"
#include "stoker/job/passes.h"
#include "stoker/job/request.h"
#include "stoker/tasks/task.h"
#include "stoker/train/plan.h"
#include "stoker/train/recovery.h"
#include "stoker/train/resolve.h"

namespace stoker::job {

struct Setup {
  std::unique_ptr<tasks::ReadyTask> task;
  std::shared_ptr<core::Communicator> ranks = std::make_shared<core::SingleRank>();
  train::Plan plan;
  c10::Device device = c10::Device(c10::kCPU);
  std::unique_ptr<tasks::Model> model;
  bool couples_samples = true;                      // batch norm: a forward pass of training needs two samples
  std::int64_t sample_flops = 0;                    // forward, counted on the CPU; 0: not known
  std::optional<PassChoice> passes;                 // the search of microbatch=auto or batch=auto
  std::vector<std::string> notes;                   // how the given weights were loaded, and other remarks for people
  core::BadSampleListener bad_samples;              // of the sources below; may be empty
  std::function<void(const std::string&)> remarks;  // receives their remarks for people, from any thread; may be empty

  // Batches of a split on the device; the training split starts at a position.
  [[nodiscard]] std::unique_ptr<core::BatchSource> training_source(core::Position start) const;
  [[nodiscard]] std::unique_ptr<core::BatchSource> evaluation_source(tasks::Split split) const;
  // How training, and an evaluation, go on when memory runs out. events: are told of it; null: nobody is.
  [[nodiscard]] train::Recovery training_recovery(core::EventEmitter* events = nullptr) const;
  [[nodiscard]] train::Recovery evaluation_recovery(core::EventEmitter* events = nullptr) const;
  // Sets the process's switches (threads, TF32, determinism) to the plan's.
  void set_switches() const;
  // Whether this rank computes one stage of a pipeline.
  [[nodiscard]] bool in_stages() const { return plan.pipeline > 1 && ranks->size() > 1; }
  // The dtype of forward passes.
  [[nodiscard]] at::ScalarType autocast_dtype() const;
  [[nodiscard]] ModelCard card() const;
};

// saved: the plan to repeat, with its measured values; null: resolve and measure. With several ranks, rank 0 measures
// and all repeat its plan.
[[nodiscard]] Setup set_up(const Request& request, const train::Plan* saved, const Say& say);

}  // namespace stoker::job
