// SPDX-License-Identifier: Apache-2.0
// A batch gathered from images on a device, as plain values that a kernel can be given. Used by ResidentSet through
// find_gatherer(); the CPU's is in gather_cpu.cpp, CUDA's in gather_cuda.cpp and gather_cuda.cu.
#pragma once

#include <cstdint>

#include "stoker/augment/image_window.h"

namespace stoker::resident {

// All memory is the device's.
struct ImageGather {
  augment::ImageShape shape;
  const std::uint8_t* pixels = nullptr;          // shape.bytes() of them
  const augment::WindowDraw* windows = nullptr;  // of each row
  std::int64_t rows = 0;
  std::uint8_t* out = nullptr;  // the rows, each of shape.image_bytes()
};

}  // namespace stoker::resident
