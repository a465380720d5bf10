// SPDX-License-Identifier: Apache-2.0
// State that influences the next step and therefore must survive a restart: parameters, buffers, optimizer moments,
// scaler, EMA, schedule, generators, position. Checkpoints save it, ranks compare it, A/B windows rewind it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <variant>

namespace stoker::core {

using Number = std::variant<std::int64_t, double>;

// Names are dotted paths, unique within one State, e.g. "optimizer.exp_avg.layer1.0.conv1.weight".
struct State {
  std::map<std::string, at::Tensor> tensors;  // may alias live tensors: copy before the next step, or write at once
  std::map<std::string, Number> numbers;

  // The entry, or CheckpointError that names it.
  [[nodiscard]] const at::Tensor& tensor(const std::string& name) const;
  [[nodiscard]] std::int64_t integer(const std::string& name) const;
  [[nodiscard]] double real(const std::string& name) const;
};

// Copies source into target in place. CheckpointError that names the entry if shape or dtype differ.
void restore_tensor(at::Tensor target, const State& state, const std::string& name);

class Stateful {
 public:
  virtual ~Stateful() = default;
  // Adds its entries; tensors may be the live ones.
  virtual void save_state(State& state) const = 0;
  // Restores its entries, in place. CheckpointError if one is missing or does not fit; then the object may be partly
  // changed, and the caller must drop it.
  virtual void load_state(const State& state) = 0;
};

}  // namespace stoker::core
