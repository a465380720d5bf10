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

}  // namespace stoker::core
