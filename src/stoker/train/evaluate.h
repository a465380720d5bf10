// SPDX-License-Identifier: Apache-2.0
// One pass over a split without gradients: sums on the device, one copy to the host at the end. Called by the loop
// between epochs and by `stoker eval`.
#pragma once

#include <vector>

#include "stoker/core/batch_source.h"
#include "stoker/core/trainable.h"

namespace stoker::train {

// Totals of Trainable::evaluate over all batches of one epoch of source, on the CPU. The model computes in evaluation
// mode and inference mode, with autocast to dtype (kFloat: none), and is put back into the mode it was in (training).
// DataError if the source has no batch.
[[nodiscard]] std::vector<core::NamedTensor> evaluate(core::Trainable& model, core::BatchSource& source,
                                                      at::ScalarType dtype);

}  // namespace stoker::train
