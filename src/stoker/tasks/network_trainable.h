// SPDX-License-Identifier: Apache-2.0
// A network as a Trainable, without the parts that a task adds: inputs, loss, metrics. Each task derives its model from
// it. One thread at a time.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stoker/tasks/model.h"

namespace stoker::tasks {

class NetworkTrainable : public Model {
 public:
  explicit NetworkTrainable(std::unique_ptr<models::Network> network) : network_(std::move(network)) {}

  [[nodiscard]] models::Network& network() const { return *network_; }
  void to(c10::Device device) override { network_->to(device); }
  models::LoadReport load(const std::map<std::string, at::Tensor>& weights) override { return network_->load(weights); }
  void set_frozen(int first_groups) override { network_->set_frozen(first_groups); }
  void freeze_statistics() override { network_->freeze_statistics(true); }
  [[nodiscard]] std::int64_t flops(at::IntArrayRef sample_shape) const override {
    return models::flops(*network_, sample_shape);
  }

  [[nodiscard]] const std::vector<core::Parameter>& parameters() const override { return network_->parameters(); }
  [[nodiscard]] const std::vector<core::NamedTensor>& buffers() const override { return network_->buffers(); }
  [[nodiscard]] core::TensorList norm_buffers() const override { return network_->norm_buffers(); }
  [[nodiscard]] core::NormCount norms_by_batch() const override { return network_->norms_by_batch(); }
  void synchronise_norms(core::NormExchange* ranks) override { network_->synchronise_norms(ranks); }
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
