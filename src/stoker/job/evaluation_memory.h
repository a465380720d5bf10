// SPDX-License-Identifier: Apache-2.0
// Finds evaluations that waste memory: with gradients on, or with predictions that are kept on the device. Each is told
// once per run. Part of job::Session. One thread.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

#include "stoker/core/events.h"
#include "stoker/memory/leak_watch.h"

namespace stoker::job {

class EvaluationMemory {
 public:
  // events: null: nobody is told.
  EvaluationMemory(c10::Device device, core::EventEmitter* events) : device_(device), events_(events) {}

  // An evaluation begins.
  void begin();
  // After each batch of it.
  void batch_done();
  // What user code returned requires a gradient.
  void with_gradients();

 private:
  c10::Device device_;
  core::EventEmitter* events_;
  std::optional<memory::LeakWatch> growth_;
  std::int64_t batches_ = 0;
  bool told_growth_ = false, told_gradients_ = false;
};

}  // namespace stoker::job
