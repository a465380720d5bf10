// SPDX-License-Identifier: Apache-2.0
// Header information that the decoders of single formats give to image_decode. Plain values.
#pragma once

namespace stoker::data {

// Before the orientation is applied.
struct StoredImage {
  int width = 0;
  int height = 0;
  int channels = 0;
  int orientation = 1;  // EXIF, 1 ... 8
};

}  // namespace stoker::data
