// SPDX-License-Identifier: Apache-2.0
// The language-model task's model: a network that predicts the next token at every position, with cross-entropy. Made
// by the text task; one thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "stoker/tasks/network_trainable.h"

namespace stoker::tasks {

struct TextModelOptions {
  std::int64_t loss_chunk = 0;  // tokens whose logits exist at a time, for a network with an open head
  at::Tensor token_bytes;       // float64 [vocabulary]: length of each token; undefined: unknown
};

class TextModel : public NetworkTrainable {
 public:
  // network: from make_gpt, with open_head if loss_chunk is not 0.
  TextModel(std::unique_ptr<models::Network> network, TextModelOptions options);

  void to(c10::Device device) override;

  // "ids" int64 [B, T].
  [[nodiscard]] core::TensorList inputs(const core::Batch& batch) const override;

  // "cross_entropy" on "target" int64 [B, T], normalised by the number of targets that are not -100.
  [[nodiscard]] std::vector<std::string> loss_names() const override { return {"cross_entropy"}; }
  [[nodiscard]] core::Normalisers normalisers(const core::Batch& batch) const override;
  [[nodiscard]] core::LossTerms loss(const core::TensorList& outputs, const core::Batch& batch) const override;

  // loss (nats per token), perplexity (its exponential), bits_per_byte (which does not depend on the tokenizer).
  [[nodiscard]] std::vector<core::NamedTensor> evaluate(const core::TensorList& outputs,
                                                        const core::Batch& batch) const override;
  [[nodiscard]] std::vector<core::MetricValue> metrics(const std::vector<core::NamedTensor>& totals) const override;

  [[nodiscard]] bool shows() const override { return false; }

  // The logits after the last of ids int64 [1, T]: float32 [vocabulary] on the CPU. In evaluation mode, in inference
  // mode.
  [[nodiscard]] at::Tensor next_logits(const at::Tensor& ids);

 private:
  [[nodiscard]] at::Tensor loss_sum(const core::TensorList& outputs, const at::Tensor& target) const;

  TextModelOptions options_;
};

}  // namespace stoker::tasks
