// SPDX-License-Identifier: Apache-2.0
// A language model that says the tokens that were taken out of a row, as BERT is trained: what the tables of this room
// measure besides the models of tasks/. One thread at a time.
#pragma once

#include <memory>
#include <utility>

#include "stoker/tasks/text/model.h"

namespace stoker::study {

class MaskedLanguageModel final : public tasks::TextModel {
 public:
  explicit MaskedLanguageModel(std::unique_ptr<models::Network> network) : TextModel(std::move(network), {}) {}
  // "ids" int64 [B, T] and "seen" bool [B, T], false where a row is padded. Of "target", -100 does not count.
  [[nodiscard]] core::TensorList inputs(const core::Batch& batch) const override {
    return {batch["ids"], batch["seen"]};
  }
};

}  // namespace stoker::study
