// SPDX-License-Identifier: Apache-2.0
#include "stoker/core/trainable.h"

namespace stoker::core {

TensorList Trainable::forward(TensorList inputs, const std::function<void(int segment)>& before) {
  for (int segment = 0; segment < segments(); ++segment) {
    if (before && draws(segment)) {
      before(segment);
    }
    inputs = forward_segment(segment, std::move(inputs));
  }
  return inputs;
}

std::int64_t parameter_count(const Trainable& model) {
  std::int64_t count = 0;
  for (const Parameter& each : model.parameters()) {
    count += each.tensor.numel();
  }
  return count;
}

}  // namespace stoker::core
