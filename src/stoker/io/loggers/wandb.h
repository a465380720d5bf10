// SPDX-License-Identifier: Apache-2.0
// wandb/offline-run-*/run-ID.wandb: an offline run that `wandb sync` uploads to Weights & Biases. A sink of the
// EventBus; called on one thread at a time. docs/formats.md describes the keys. Nothing is sent.
#pragma once

#include <filesystem>
#include <memory>

#include "stoker/core/events.h"

namespace stoker::io {

// Writes the plan as configuration, steps and evaluations as history, the newest values as summary, and figures of the
// machine. Steps: see StepChoice. Each session of a run has its own folder with the run's ID, which W&B joins.
class WandbLog final : public core::EventSink {
 public:
  // run_folder: must exist at the first event. findings: receives the command that uploads the run. WANDB_PROJECT
  // (default "stoker"), WANDB_ENTITY and WANDB_NAME (default: the folder's name) are read here. on() and flush() throw
  // the IoError of a folder or disk, so that the bus drops this log and the run continues.
  WandbLog(const std::filesystem::path& run_folder, core::EventEmitter& findings);
  ~WandbLog() override;

  void on(const core::Event& event) override;
  void flush() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker::io
