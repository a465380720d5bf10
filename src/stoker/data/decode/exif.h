// SPDX-License-Identifier: Apache-2.0
// Reads the EXIF orientation and rotates images upright. Used by image_decode. Thread-safe: no state.
#pragma once

#include "stoker/augment/image.h"
#include "stoker/base/file.h"

namespace stoker::data {

// The orientation tag (0x0112, EXIF 2.3 section 4.6.4) of the first directory of a TIFF block, 1 ... 8; 1 if it is
// missing or the block is damaged: EXIF is often damaged although the pixels are good.
[[nodiscard]] int exif_orientation(Bytes tiff);

// The upright version of from: 2 mirrored, 3 rotated by 180 degrees, 4 flipped vertically, 5 transposed, 6 rotated
// right by 90 degrees, 7 transverse, 8 rotated left by 90 degrees. 5 to 8 swap width and height.
void turn_upright(augment::ImageView from, int orientation, augment::Image& to);

// The place of a region of the upright image in the stored image of width x height.
[[nodiscard]] augment::Region region_as_stored(const augment::Region& region, int orientation, int width, int height);

}  // namespace stoker::data
