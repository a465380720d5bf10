// SPDX-License-Identifier: Apache-2.0
// A language model that predicts masked tokens, as BERT is trained. Measured by the tables of this room besides the
// models of tasks/. One thread at a time.
#pragma once

#include <memory>
#include <utility>

#include "stoker/tasks/text/model.h"

namespace stoker::study {

class MaskedLanguageModel final : public tasks::TextModel {
 public:
  explicit MaskedLanguageModel(std::unique_ptr<models::Network> network) : TextModel(std::move(network), {}) {}
  // "ids" int64 [B, T] and "seen" bool [B, T], false for padding. "target" values of -100 are ignored.
  [[nodiscard]] core::TensorList inputs(const core::Batch& batch) const override {
    return {batch["ids"], batch["seen"]};
  }
};

}  // namespace stoker::study
