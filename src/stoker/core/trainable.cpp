// SPDX-License-Identifier: Apache-2.0
#include "stoker/core/trainable.h"

namespace stoker::core {

TensorList Trainable::forward(TensorList inputs) {
  for (int segment = 0; segment < segments(); ++segment) {
    inputs = forward_segment(segment, std::move(inputs));
  }
  return inputs;
}

}  // namespace stoker::core
