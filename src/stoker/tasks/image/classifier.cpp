// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/image/classifier.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include "stoker/ops/cross_entropy.h"
#include "stoker/tasks/metrics/classification.h"

namespace stoker::tasks {

ImageClassifier::ImageClassifier(std::unique_ptr<models::Network> network, ClassifierOptions options)
    : NetworkTrainable(std::move(network)), options_(std::move(options)) {
  const ImagePreprocessing& pixels = options_.preprocessing;
  shift_ = at::tensor(pixels.mean, at::kDouble).mul(255).to(at::kFloat).reshape({1, pixels.channels, 1, 1});
  scale_ = at::tensor(pixels.std, at::kDouble).mul(255).reciprocal().to(at::kFloat).reshape({1, pixels.channels, 1, 1});
  ImageClassifier::set_channels_last(options_.channels_last);
}

bool ImageClassifier::set_channels_last(bool on) {
  options_.channels_last = on;
  return network().lay_out(on ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
}

void ImageClassifier::to(c10::Device device) {
  NetworkTrainable::to(device);
  shift_ = shift_.to(device);
  scale_ = scale_.to(device);
  if (options_.class_weights.defined()) {
    options_.class_weights = options_.class_weights.to(device);
  }
}

core::TensorList ImageClassifier::inputs(const core::Batch& batch) const {
  at::Tensor pixels = batch["image"].permute({0, 3, 1, 2}).to(at::kFloat);  // NHWC memory is channels_last already
  pixels = pixels.sub_(shift_).mul_(scale_);
  if (!options_.channels_last) {
    // Grey images have the same memory order in both layouts; strides tell the convolutions which one is meant.
    pixels = at::empty(pixels.sizes(), pixels.options()).copy_(pixels);
  }
  return {pixels};
}

core::Normalisers ImageClassifier::normalisers(const core::Batch& batch) const {
  const core::Field* share = batch.find("share");
  const at::Tensor all = share == nullptr ? ops::cross_entropy_normaliser(batch["target"], options_.class_weights)
                                          : ops::mixed_cross_entropy_normaliser(batch["target"], batch["target_mixed"],
                                                                                share->values, options_.class_weights);
  return all.reshape({1});
}

core::LossTerms ImageClassifier::loss(const core::TensorList& outputs, const core::Batch& batch) const {
  const core::Field* share = batch.find("share");
  const at::Tensor sum =
      share == nullptr
          ? ops::cross_entropy_sum(outputs.front(), batch["target"], options_.label_smoothing, options_.class_weights)
          : ops::mixed_cross_entropy_sum(outputs.front(), batch["target"], batch["target_mixed"], share->values,
                                         options_.label_smoothing, options_.class_weights);
  return {{"cross_entropy", 1, sum}};
}

std::vector<core::NamedTensor> ImageClassifier::evaluate(const core::TensorList& outputs,
                                                         const core::Batch& batch) const {
  return classification_totals(outputs.front(), batch["target"]);
}

std::vector<core::MetricValue> ImageClassifier::metrics(const std::vector<core::NamedTensor>& totals) const {
  return classification_metrics(totals);
}

at::Tensor ImageClassifier::verdicts(const core::TensorList& outputs, const core::Batch& batch) const {
  const auto [probability, predicted] = at::softmax(outputs.front().to(at::kFloat), 1).max(1);
  return at::stack({batch["target"].to(at::kFloat), predicted.to(at::kFloat), probability}, 1);
}

Answers ImageClassifier::answers(const core::TensorList& outputs) const {
  return {at::softmax(outputs.front().to(at::kFloat), 1), options_.classes};
}

std::vector<Table> ImageClassifier::tables(const std::vector<core::NamedTensor>& totals) const {
  return {class_table(class_rows(totals, options_.classes))};
}

}  // namespace stoker::tasks
