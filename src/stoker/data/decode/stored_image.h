// SPDX-License-Identifier: Apache-2.0
// What the decoders of single formats tell image_decode of a file's header. Plain values.
#pragma once

namespace stoker::data {

// Before orientation is carried out.
struct StoredImage {
  int width = 0;
  int height = 0;
  int channels = 0;
  int orientation = 1;  // EXIF, 1 ... 8
};

}  // namespace stoker::data
