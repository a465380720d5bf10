// SPDX-License-Identifier: Apache-2.0
// The loss of a forward pass, as backward needs it. Used by train::Step and train::PipelinePasses. Thread-safe: no
// state.
#pragma once

#include "stoker/core/batch.h"
#include "stoker/core/loss_terms.h"
#include "stoker/core/trainable.h"

namespace stoker::train {

// model.loss(); ConfigError unless it has as many terms as names.
[[nodiscard]] core::LossTerms loss_of_pass(const core::Trainable& model, const core::TensorList& outputs,
                                           const core::Batch& part, std::size_t names);
// core::normalise(), by the kernel of the device if there is one. scale: of a gradient scaler; undefined: 1.
[[nodiscard]] core::NormalisedLoss normalise_pass(const core::LossTerms& terms, const core::Normalisers& normalisers,
                                                  const at::Tensor& scale, at::Device device);

}  // namespace stoker::train
