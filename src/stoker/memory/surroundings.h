// SPDX-License-Identifier: Apache-2.0
// What a forward pass depends on besides its inputs and parameters: random generators, autocast, running statistics.
// Used by the recomputation. Taken on the thread of the forward pass, restored on the thread of the backward pass.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <vector>

#include "stoker/core/trainable.h"

namespace stoker::memory {

// As they are when it is made.
class Surroundings {
 public:
  // device: of the model. draws: the forward pass draws random numbers, so the generators' states (5 KB on a CPU) are
  // kept. statistics: what a forward pass in training mode changes (Trainable::norm_buffers()).
  Surroundings(c10::Device device, bool draws, core::TensorList statistics);

 private:
  friend class SurroundingsScope;
  struct Autocast {
    c10::DeviceType type;
    bool enabled;
    c10::ScalarType dtype;
  };
  struct Draws {
    at::Generator generator;
    at::Tensor state;  // bytes, on the CPU
  };
  void restore_autocast() const;
  void restore_generators() const;

  c10::Device device_;
  std::vector<Autocast> autocast_;
  bool caches_casts_;
  std::vector<Draws> generators_;
  core::TensorList statistics_;
};

// Turns gradients on and restores autocast and generators for its lifetime. Afterwards these are as before, and so are
// the statistics, without a trace in their version counters: autograd may have saved them.
class SurroundingsScope {
 public:
  explicit SurroundingsScope(const Surroundings& then);
  ~SurroundingsScope();
  SurroundingsScope(const SurroundingsScope&) = delete;
  SurroundingsScope& operator=(const SurroundingsScope&) = delete;

 private:
  const Surroundings& then_;
  Surroundings now_;
  core::TensorList statistics_;  // their values
  bool gradients_;
};

}  // namespace stoker::memory
