// SPDX-License-Identifier: Apache-2.0
// The model that a run trains and evaluates: a Trainable with functions that job needs beyond a step (moving it,
// loading weights, freezing, and results for people). Networks are NetworkTrainable, any other Trainable is wrapped by
// as_model(). One thread at a time.
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

// A table for people: `stoker eval` prints it, reports show it, JSON has each row as an object.
struct Table {
  using Cell = std::variant<std::string, std::int64_t, double>;  // NaN: no value
  std::string name;                                              // "classes": its key in JSON
  std::vector<std::string> columns;                              // snake_case
  std::vector<std::vector<Cell>> rows;
};

// The predictions for each sample, for people.
struct Answers {
  at::Tensor values;                     // [B, classes] probabilities, or [B] numbers in the target's unit
  std::span<const std::string> classes;  // the model's names; empty: numbers
};

class Model : public core::Trainable {
 public:
  // Moves everything, with the loss's constants.
  virtual void to(c10::Device device) = 0;
  // Copies weights that fit by name and shape, in place. CheckpointError if none fit.
  virtual models::LoadReport load(const std::map<std::string, at::Tensor>& weights) = 0;
  // The first groups of segments keep their weights. ConfigError if there are fewer groups.
  virtual void set_frozen(int first_groups) = 0;
  // Batch norms use their running statistics and keep them, also in training. ConfigError if the model cannot.
  virtual void freeze_statistics() = 0;
  // Images and convolution weights in channels_last order or in PyTorch's default order, from here on; values stay.
  // False: the order would not speed anything up.
  virtual bool set_channels_last(bool on) {
    (void)on;
    return false;
  }
  // Floating-point operations of one sample of this shape, forward; 0: unknown.
  [[nodiscard]] virtual std::int64_t flops(at::IntArrayRef sample_shape) const {
    (void)sample_shape;
    return 0;
  }
  // Tables from the totals of an evaluation, by then on the CPU, besides metrics().
  [[nodiscard]] virtual std::vector<Table> tables(const std::vector<core::NamedTensor>&) const { return {}; }

  // The model's verdict on each sample of a batch, float32 [B, ...] on its device, for ReadyTask::exhibits();
  // undefined: none.
  [[nodiscard]] virtual at::Tensor verdicts(const core::TensorList& outputs, const core::Batch& batch) const {
    (void)outputs, (void)batch;
    return {};
  }

  // For kinds of tasks that predict (TaskKind::open_unlabelled); values undefined: no predictions.
  [[nodiscard]] virtual Answers answers(const core::TensorList& outputs) const {
    (void)outputs;
    return {};
  }

  // Whether tables() or verdicts() return anything.
  [[nodiscard]] virtual bool shows() const { return true; }
};

// Any Trainable as a model. It is moved by moving its parameters and buffers in place; norm_buffers() must be among
// them. It has one group of segments, which cannot be frozen.
[[nodiscard]] std::unique_ptr<Model> as_model(std::unique_ptr<core::Trainable> trainable);

}  // namespace stoker::tasks
