// SPDX-License-Identifier: Apache-2.0
// How a run survives when memory runs out: releases what is unused, computes the same global batch again in smaller
// passes, tells it as a FaultSurvived, and lets passes grow again once they fit. Asked by Step and evaluate(); the loop
// also takes its batches through it. One thread.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "stoker/core/batch_source.h"
#include "stoker/core/events.h"
#include "stoker/core/stateful.h"
#include "stoker/memory/batch_split.h"
#include "stoker/memory/microbatch.h"

namespace stoker::train {

struct RecoveryOptions {
  memory::MicrobatchOptions microbatch = {};
  c10::Device device = c10::Device(c10::kCPU);
  std::string work = "the step";             // for messages: "the step ran out of memory"
  core::EventEmitter* events = nullptr;      // null: says nothing
  std::function<std::string()> advice = {};  // what holds memory and how to fit, for the error that ends the run
  // The model couples the samples of a pass (batch norm): what helps against small passes, said once, as a Finding,
  // with the first passes that are smaller than their batch. Empty: nothing to say.
  std::string coupled = {};
};

class Recovery final : public memory::BatchSplit, public core::Stateful {
 public:
  explicit Recovery(RecoveryOptions options);

  // Around the work on a step, counted from 1. Lets passes grow if enough steps were clean and the figures of the
  // device allow twice as many samples.
  void begin_step(std::int64_t step);
  void step_done();
  // Work between steps that changes nothing if it fails, such as a save: again, with all unused memory released, if it
  // runs out of memory once. what: "the save of the last checkpoint".
  void between_steps(const std::string& what, const std::function<void()>& work);
  // From the second failure in a row on, passes shrink, too.
  [[nodiscard]] std::optional<core::Batch> next(core::BatchSource& source) override;

  [[nodiscard]] std::int64_t passes(std::int64_t samples) const override { return microbatch_.passes(samples); }
  [[nodiscard]] std::int64_t limit() const override { return microbatch_.samples(); }
  void limit_to(std::int64_t samples) override { microbatch_.follow(samples); }
  [[nodiscard]] std::int64_t passes_under(std::int64_t limit, std::int64_t samples) const override {
    return microbatch_.passes_under(limit, samples);
  }
  // Releases memory and halves the passes. OutOfMemory with what to do if they are as small as the model accepts.
  void ran_out(const std::exception& error, std::int64_t samples, bool after_passes) override;

  // The changes of the microbatch so far: MicrobatchOptions::repeat repeats them.
  [[nodiscard]] const memory::MicrobatchSchedule& schedule() const { return microbatch_.schedule(); }

  // Replaces RecoveryOptions::advice.
  void advise(std::function<std::string()> advice) { options_.advice = std::move(advice); }

  void save_state(core::State& state) const override { microbatch_.save_state(state); }
  void load_state(const core::State& state) override { microbatch_.load_state(state); }

 private:
  void release() const;
  void tell(const std::string& text);
  // RecoveryOptions::coupled, if the passes over a batch of this size on this rank are smaller than the whole batch.
  void say_coupled(std::int64_t samples);
  [[noreturn]] void give_up(const std::exception& error);
  [[nodiscard]] bool twice_fits() const;
  // Passes shrink if allocations succeed again and again only after the cache was released: each makes the host wait.
  void watch_retries();

  RecoveryOptions options_;
  memory::Microbatch microbatch_;
  std::int64_t step_ = 0;
  std::int64_t largest_batch_ = 1;
  std::int64_t global_batch_ = 0;  // samples of the newest batch, on all ranks
  std::int64_t retries_ = -1;      // of the device, at the last look
};

}  // namespace stoker::train
