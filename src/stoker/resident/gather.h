// SPDX-License-Identifier: Apache-2.0
// Gathers a batch from images on a device; plain values for a kernel. Used by ResidentSet through find_gatherer(). The
// CPU version is in gatherer.cpp, the CUDA version in gather_cuda.cpp and gather_cuda.cu.
#pragma once

#include <cstdint>

#include "stoker/augment/image_window.h"

namespace stoker::resident {

// All memory is on the device.
struct ImageGather {
  augment::ImageShape shape;
  const std::uint8_t* pixels = nullptr;          // shape.bytes() bytes
  const augment::WindowDraw* windows = nullptr;  // one per row
  std::int64_t rows = 0;
  std::uint8_t* out = nullptr;  // the rows, shape.image_bytes() bytes each
};

}  // namespace stoker::resident
