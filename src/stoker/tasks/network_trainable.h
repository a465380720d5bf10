// SPDX-License-Identifier: Apache-2.0
// A network as a Trainable, but for what a task adds: inputs, loss, metrics. Each task derives its model from it.
// One thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
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

class NetworkTrainable : public core::Trainable {
 public:
  explicit NetworkTrainable(std::unique_ptr<models::Network> network) : network_(std::move(network)) {}

  [[nodiscard]] models::Network& network() const { return *network_; }
  // Moves everything, the loss's constants included.
  virtual void to(c10::Device device) { network_->to(device); }
  // Images and the weights of convolutions in channels_last order or in PyTorch's own, from here on; values stay.
  // False: there is nothing that the order could speed up.
  virtual bool set_channels_last(bool on) {
    (void)on;
    return false;
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

  [[nodiscard]] const std::vector<core::Parameter>& parameters() const override { return network_->parameters(); }
  [[nodiscard]] const std::vector<core::NamedTensor>& buffers() const override { return network_->buffers(); }
  [[nodiscard]] core::TensorList norm_buffers() const override { return network_->norm_buffers(); }
  [[nodiscard]] int segments() const override { return network_->segments(); }
  [[nodiscard]] std::string segment_name(int segment) const override { return network_->segment(segment).name; }
  [[nodiscard]] std::vector<std::string> inner_segments(int segment) const override {
    std::vector<std::string> names;
    for (const models::InnerSegment& each : network_->segment(segment).inner) {
      names.push_back(each.name);
    }
    return names;
  }
  [[nodiscard]] core::TensorList forward_segment(int segment, core::TensorList inputs) override {
    return network_->forward_segment(segment, std::move(inputs));
  }
  [[nodiscard]] core::TensorList forward_inner(int segment, int inner, core::TensorList inputs) override {
    return network_->segment(segment).inner.at(static_cast<std::size_t>(inner)).forward(std::move(inputs));
  }
  [[nodiscard]] bool draws(int segment) const override { return network_->segment(segment).draws; }
  void set_training(bool on) override { network_->set_training(on); }

 private:
  std::unique_ptr<models::Network> network_;
};

}  // namespace stoker::tasks
