// SPDX-License-Identifier: Apache-2.0
// Reads images saved by NumPy: one array per file (numpy/lib/format.py, versions 1 to 3), 8- or 16-bit unsigned
// integers, shape [height, width] or [height, width, 1, 3 or 4] in C order. Used only by image_decode, which documents
// the behaviour. Thread-safe: no state.
#pragma once

#include <string_view>

#include "stoker/augment/image.h"
#include "stoker/base/file.h"
#include "stoker/data/decode/stored_image.h"

namespace stoker::data {

struct NpyImage {
  StoredImage stored;
  Bytes values;         // within the file, with the size given by the shape
  int value_bytes = 1;  // 1 or 2
  int high_byte = 0;    // offset of the high 8 bits within a value
};

// Reads the header. DataError, with what to do, for an array that is not an image, and for a file that is longer or
// shorter than its header says.
[[nodiscard]] NpyImage open_npy(Bytes file, std::string_view name);
// Only the region, with 1 channel if the image is grey and 1 is requested, else with 3.
void npy_part(const NpyImage& image, const augment::Region& region, int channels, augment::Image& out);

}  // namespace stoker::data
