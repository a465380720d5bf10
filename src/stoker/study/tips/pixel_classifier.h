// SPDX-License-Identifier: Apache-2.0
// A network that classifies every pixel, with cross-entropy. Measured by the tables of this room besides the models of
// tasks/. One thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "stoker/tasks/network_trainable.h"

namespace stoker::study {

class PixelClassifier final : public tasks::NetworkTrainable {
 public:
  // network: [N, C, H, W] to logits [N, classes, H, W].
  PixelClassifier(std::unique_ptr<models::Network> network, bool channels_last);

  // "image" uint8 [B, H, W, C] to float32 [B, C, H, W] in -1 ... 1.
  [[nodiscard]] core::TensorList inputs(const core::Batch& batch) const override;
  // "cross_entropy" on "target" int64 [B, H, W], normalised by the number of pixels.
  [[nodiscard]] std::vector<std::string> loss_names() const override { return {"cross_entropy"}; }
  [[nodiscard]] core::Normalisers normalisers(const core::Batch& batch) const override;
  [[nodiscard]] core::LossTerms loss(const core::TensorList& outputs, const core::Batch& batch) const override;
  // accuracy: the share of correct pixels.
  [[nodiscard]] std::vector<core::NamedTensor> evaluate(const core::TensorList& outputs,
                                                        const core::Batch& batch) const override;
  [[nodiscard]] std::vector<core::MetricValue> metrics(const std::vector<core::NamedTensor>& totals) const override;

 private:
  bool channels_last_;
};

}  // namespace stoker::study
