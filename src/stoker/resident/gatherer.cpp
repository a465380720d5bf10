// SPDX-License-Identifier: Apache-2.0
#include "stoker/resident/gatherer.h"

#include "stoker/device/backend.h"

namespace stoker::resident {
namespace {

// In the caller's thread, row by row.
void gather_on_cpu(const ImageGather& work, c10::Device) {
  const int bytes = work.shape.image_bytes();
  for (std::int64_t row = 0; row < work.rows; ++row) {
    const augment::WindowDraw& drawn = work.windows[row];
    augment::fill_window(work.shape, drawn, work.pixels + drawn.image * std::int64_t{bytes}, 0, bytes,
                         work.out + row * bytes);
  }
}

}  // namespace

Gatherer* find_gatherer(c10::DeviceType kind) {
  if (kind == c10::DeviceType::CPU) {
    return gather_on_cpu;
  }
  return kind == c10::DeviceType::CUDA ? reinterpret_cast<Gatherer*>(device::find_function(kCudaGatherer)) : nullptr;
}

}  // namespace stoker::resident
