// SPDX-License-Identifier: Apache-2.0
// A batch gathered from pictures on a device, as plain values that a kernel can be given. Used by ResidentSet through
// Backend; the CPU's is in resident_cpu.cpp, CUDA's in resident_cuda.cu.
#pragma once

#include <cstdint>

#include "stoker/augment/picture_window.h"

namespace stoker::device {

// All memory is the device's.
struct PictureGather {
  augment::PictureShape shape;
  const std::uint8_t* pixels = nullptr;          // shape.bytes() of them
  const augment::WindowDraw* windows = nullptr;  // of each row
  std::int64_t rows = 0;
  std::uint8_t* out = nullptr;  // the rows, each of shape.picture_bytes()
};

// In the caller's thread, row after row.
void gather_on_cpu(const PictureGather& work);

}  // namespace stoker::device
