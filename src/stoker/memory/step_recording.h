// SPDX-License-Identifier: Apache-2.0
// Records the allocations of one training step, with the operators that made them. Used by job::MemoryWatch for one
// step early in a run, and to name what a leak keeps. Costs a step microseconds per allocation and per operator, and
// nothing when none is recorded. One at a time, on the thread that steps; allocations of all threads are seen.
//
//   StepRecording recording(device);          // before the step
//   recording.own(Category::kGradients, ...)  // after compute and before commit: who owns what
//   StepRecord record = recording.finish();   // after commit
//   Leftovers left = recording.leftovers();   // some steps later
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "stoker/memory/step_record.h"

namespace stoker::memory {

class StepRecording {
 public:
  // Begins. Not active, and then empty, if something else listens to the allocator, or if the device's cannot be heard.
  explicit StepRecording(c10::Device device);
  ~StepRecording();
  StepRecording(const StepRecording&) = delete;
  StepRecording& operator=(const StepRecording&) = delete;
  [[nodiscard]] bool active() const { return active_; }

  // The storage of a tensor belongs to a category. Of two calls the first counts. An undefined tensor is ignored.
  void own(Category category, const at::Tensor& tensor);
  // Ends the recording; from now on only frees of what the step made are seen.
  [[nodiscard]] StepRecord finish();
  // What the step made and nobody owns or has freed until now. Nodes of its graph count, too.
  [[nodiscard]] Leftovers leftovers() const;

 private:
  bool active_;
};

}  // namespace stoker::memory
