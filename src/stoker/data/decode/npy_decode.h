// SPDX-License-Identifier: Apache-2.0
// Images that NumPy saved: one array a file (numpy/lib/format.py, versions 1 to 3), of whole numbers of 8 or 16 bits
// and of shape [height, width] or [height, width, 1, 3 or 4] in C order. Used by image_decode alone, which documents
// the behaviour. Thread-safe: no state.
#pragma once

#include <string_view>

#include "stoker/augment/image.h"
#include "stoker/base/file.h"
#include "stoker/data/decode/stored_image.h"

namespace stoker::data {

struct NpyImage {
  StoredImage stored;
  Bytes values;         // within the file, as many as the shape says
  int value_bytes = 1;  // 1 or 2
  int high_byte = 0;    // of a value, the place of its high 8 bits
};

// Reads the header. DataError that says what to do about an array that is no image, and for a file that is longer or
// shorter than its header says.
[[nodiscard]] NpyImage open_npy(Bytes file, std::string_view name);
// Region of it, alone, in 1 channel where it is grey and 1 is asked for, else in 3.
void npy_part(const NpyImage& image, const augment::Region& region, int channels, augment::Image& out);

}  // namespace stoker::data
