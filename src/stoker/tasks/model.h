// SPDX-License-Identifier: Apache-2.0
// What a run trains and evaluates: a Trainable with what job asks beyond a step (moving it, loading weights, freezing,
// and what its outputs say to people). Networks come as NetworkTrainable, any other Trainable through as_model(). One
// thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "stoker/core/trainable.h"
#include "stoker/models/network.h"

namespace stoker::tasks {

// A table for people: `stoker eval` prints it, reports show it, JSON holds each row as an object.
struct Table {
  using Cell = std::variant<std::string, std::int64_t, double>;  // NaN: nothing to say
  std::string name;                                              // "classes": its key in JSON
  std::vector<std::string> columns;                              // snake_case
  std::vector<std::vector<Cell>> rows;
};

// What outputs say of each sample, for people.
struct Answers {
  at::Tensor values;                     // [B, classes] probabilities, or [B] numbers in the target's unit
  std::span<const std::string> classes;  // the model's names; empty: numbers
};

class Model : public core::Trainable {
 public:
  // Moves everything, the loss's constants included.
  virtual void to(c10::Device device) = 0;
  // Copies what fits by name and shape, in place. CheckpointError if nothing fits.
  virtual models::LoadReport load(const std::map<std::string, at::Tensor>& weights) = 0;
  // The first groups of segments keep their weights. ConfigError for more groups than there are.
  virtual void set_frozen(int first_groups) = 0;
  // Images and the weights of convolutions in channels_last order or in PyTorch's own, from here on; values stay.
  // False: there is nothing that the order could speed up.
  virtual bool set_channels_last(bool on) {
    (void)on;
    return false;
  }
  // Floating-point operations of one sample of this shape, forward; 0: not known.
  [[nodiscard]] virtual std::int64_t flops(at::IntArrayRef sample_shape) const {
    (void)sample_shape;
    return 0;
  }
  // What the totals of an evaluation, by then on the CPU, say beyond metrics().
  [[nodiscard]] virtual std::vector<Table> tables(const std::vector<core::NamedTensor>&) const { return {}; }

  // What the model says of each sample of a batch, float32 [B, ...] on its device, for Task::exhibits; undefined:
  // nothing.
  [[nodiscard]] virtual at::Tensor verdicts(const core::TensorList& outputs, const core::Batch& batch) const {
    (void)outputs, (void)batch;
    return {};
  }

  // For kinds of tasks that predict (TaskKind::open_unlabelled); values undefined: no answer.
  [[nodiscard]] virtual Answers answers(const core::TensorList& outputs) const {
    (void)outputs;
    return {};
  }

  // Whether tables() or verdicts() say anything of a split.
  [[nodiscard]] virtual bool shows() const { return true; }
};

// Any Trainable as a model. It is moved by moving its parameters and buffers in place, which norm_buffers() must be
// among, and has one group of segments, which cannot be frozen.
[[nodiscard]] std::unique_ptr<Model> as_model(std::unique_ptr<core::Trainable> trainable);

}  // namespace stoker::tasks
