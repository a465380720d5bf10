// SPDX-License-Identifier: Apache-2.0
// The weights of a model as histograms, for tensorboard=histograms. Part of Job; between steps, since it waits for the
// device. Thread-safe: no state.
#pragma once

#include "stoker/core/events.h"
#include "stoker/core/trainable.h"

namespace stoker::job {

// 64 bins a parameter from its smallest to its largest value (one bin of width 1 where all are equal). Values that are
// not finite are left out, and so is a parameter that has no other.
[[nodiscard]] core::WeightHistograms weight_histograms(const core::Trainable& model, std::int64_t step);

}  // namespace stoker::job
