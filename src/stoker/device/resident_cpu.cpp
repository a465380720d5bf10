// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/picture_gather.h"

namespace stoker::device {

void gather_on_cpu(const PictureGather& work) {
  const int bytes = work.shape.picture_bytes();
  for (std::int64_t row = 0; row < work.rows; ++row) {
    const augment::WindowDraw& drawn = work.windows[row];
    augment::fill_window(work.shape, drawn, work.pixels + drawn.picture * std::int64_t{bytes}, 0, bytes,
                         work.out + row * bytes);
  }
}

}  // namespace stoker::device
