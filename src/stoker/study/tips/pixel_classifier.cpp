// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/tips/pixel_classifier.h"

#include <ATen/TensorOperators.h>

#include "stoker/ops/cross_entropy.h"

namespace stoker::study {

PixelClassifier::PixelClassifier(std::unique_ptr<models::Network> network, bool channels_last)
    : NetworkTrainable(std::move(network)), channels_last_(channels_last) {
  this->network().lay_out(channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
}

core::TensorList PixelClassifier::inputs(const core::Batch& batch) const {
  const at::Tensor pixels = batch["image"].permute({0, 3, 1, 2}).to(at::kFloat).div_(127.5).sub_(1);
  return {channels_last_ ? pixels : pixels.contiguous()};
}

core::Normalisers PixelClassifier::normalisers(const core::Batch& batch) const {
  return ops::cross_entropy_normaliser(batch["target"].flatten()).reshape({1});
}

core::LossTerms PixelClassifier::loss(const core::TensorList& outputs, const core::Batch& batch) const {
  const at::Tensor rows = outputs.front().permute({0, 2, 3, 1}).flatten(0, 2);
  return {{"cross_entropy", 1, ops::cross_entropy_sum(rows, batch["target"].flatten())}};
}

std::vector<core::NamedTensor> PixelClassifier::evaluate(const core::TensorList& outputs,
                                                         const core::Batch& batch) const {
  const at::Tensor right = outputs.front().argmax(1).eq(batch["target"]);
  return {{"right", right.sum().reshape({1})}, {"pixels", right.ge(0).sum().reshape({1})}};
}

std::vector<core::MetricValue> PixelClassifier::metrics(const std::vector<core::NamedTensor>& totals) const {
  const auto count = [&](std::size_t i) { return static_cast<double>(totals.at(i).tensor.item<std::int64_t>()); };
  return {{"accuracy", count(0) / count(1)}};
}

}  // namespace stoker::study
