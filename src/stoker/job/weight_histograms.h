// SPDX-License-Identifier: Apache-2.0
// Histograms of a model's weights, for tensorboard=histograms. Part of Job; called between steps, since it waits for
// the device. Thread-safe: no state.
#pragma once

#include "stoker/core/events.h"
#include "stoker/core/trainable.h"

namespace stoker::job {

// 64 bins per parameter from its smallest to its largest value (one bin of width 1 if all are equal). Values that are
// not finite are skipped, and so is a parameter that has no others.
[[nodiscard]] core::WeightHistograms weight_histograms(const core::Trainable& model, std::int64_t step);

}  // namespace stoker::job
