// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/model.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "stoker/base/error.h"

namespace stoker::tasks {
namespace {

class AnyModel final : public Model {
 public:
  explicit AnyModel(std::unique_ptr<core::Trainable> inner) : inner_(std::move(inner)) {}

  void to(c10::Device device) override {
    const at::NoGradGuard no_grad;
    for (const core::Parameter& each : parameters()) {
      each.tensor.mutable_grad().reset();
      each.tensor.set_data(each.tensor.detach().to(device));
    }
    for (const core::NamedTensor& each : buffers()) {
      each.tensor.set_data(each.tensor.to(device));
    }
  }
  models::LoadReport load(const std::map<std::string, at::Tensor>& weights) override {
    const at::NoGradGuard no_grad;
    models::LoadReport report;
    std::vector<core::NamedTensor> own = buffers();
    for (const core::Parameter& each : parameters()) {
      own.push_back({each.name, each.tensor});
    }
    for (const core::NamedTensor& each : own) {
      const auto found = weights.find(each.name);
      if (found == weights.end()) {
        report.missing.push_back(each.name);
      } else if (found->second.sizes() != each.tensor.sizes()) {
        report.wrong_shape.push_back(fmt::format("{}: [{}] in the file, [{}] here", each.name,
                                                 fmt::join(found->second.sizes().vec(), ", "),
                                                 fmt::join(each.tensor.sizes().vec(), ", ")));
      } else {
        at::Tensor(each.tensor).copy_(found->second);
        report.loaded.push_back(each.name);
      }
    }
    for (const auto& [name, tensor] : weights) {
      const auto same = [&name = name](const core::NamedTensor& each) { return each.name == name; };
      if (std::ranges::none_of(own, same)) {
        report.foreign.push_back(name);
      }
    }
    if (report.loaded.empty()) {
      fail<CheckpointError>("tasks.model", "no weights fit: {}", report.text());
    }
    return report;
  }
  void set_frozen(int first_groups) override {
    if (first_groups != 0) {
      fail<ConfigError>("tasks.model", "freeze must be 0 for this model, got {}: it has one group of segments",
                        first_groups);
    }
  }
  void freeze_statistics() override {
    fail<ConfigError>("tasks.model",
                      "freeze_norm=on needs a network of Stoker's, which knows its batch norms; remove it");
  }
  [[nodiscard]] bool shows() const override { return false; }

  [[nodiscard]] const std::vector<core::Parameter>& parameters() const override { return inner_->parameters(); }
  [[nodiscard]] const std::vector<core::NamedTensor>& buffers() const override { return inner_->buffers(); }
  [[nodiscard]] core::TensorList norm_buffers() const override { return inner_->norm_buffers(); }
  [[nodiscard]] core::TensorList inputs(const core::Batch& batch) const override { return inner_->inputs(batch); }
  [[nodiscard]] int segments() const override { return inner_->segments(); }
  [[nodiscard]] std::string segment_name(int segment) const override { return inner_->segment_name(segment); }
  [[nodiscard]] std::vector<std::string> inner_segments(int segment) const override {
    return inner_->inner_segments(segment);
  }
  [[nodiscard]] core::TensorList forward_segment(int segment, core::TensorList inputs) override {
    return inner_->forward_segment(segment, std::move(inputs));
  }
  [[nodiscard]] core::TensorList forward_inner(int segment, int inner, core::TensorList inputs) override {
    return inner_->forward_inner(segment, inner, std::move(inputs));
  }
  [[nodiscard]] bool draws(int segment) const override { return inner_->draws(segment); }
  [[nodiscard]] std::vector<std::string> loss_names() const override { return inner_->loss_names(); }
  [[nodiscard]] core::Normalisers normalisers(const core::Batch& batch) const override {
    return inner_->normalisers(batch);
  }
  [[nodiscard]] bool counts_samples() const override { return inner_->counts_samples(); }
  [[nodiscard]] core::LossTerms loss(const core::TensorList& outputs, const core::Batch& batch) const override {
    return inner_->loss(outputs, batch);
  }
  [[nodiscard]] std::vector<core::NamedTensor> evaluate(const core::TensorList& outputs,
                                                        const core::Batch& batch) const override {
    return inner_->evaluate(outputs, batch);
  }
  [[nodiscard]] std::vector<core::MetricValue> metrics(const std::vector<core::NamedTensor>& totals) const override {
    return inner_->metrics(totals);
  }
  void set_training(bool on) override { inner_->set_training(on); }

 private:
  std::unique_ptr<core::Trainable> inner_;
};

}  // namespace

std::unique_ptr<Model> as_model(std::unique_ptr<core::Trainable> trainable) {
  return std::make_unique<AnyModel>(std::move(trainable));
}

}  // namespace stoker::tasks
