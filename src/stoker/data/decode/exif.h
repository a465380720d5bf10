// SPDX-License-Identifier: Apache-2.0
// How a camera was held: the orientation out of EXIF data, and images turned upright by it. Used by image_decode.
// Thread-safe: no state.
#pragma once

#include "stoker/augment/image.h"
#include "stoker/base/file.h"

namespace stoker::data {

// The orientation tag (0x0112, EXIF 2.3 section 4.6.4) of the first directory of a TIFF block, 1 ... 8; 1 if there is
// none or the block is damaged: EXIF is often mangled, and the pixels are good all the same.
[[nodiscard]] int exif_orientation(Bytes tiff);

// from as it looks upright: 2 mirrored, 3 half a turn, 4 mirrored top to bottom, 5 transposed, 6 a quarter to the
// right, 7 transversed, 8 a quarter to the left. 5 to 8 swap width and height.
void turn_upright(augment::ImageView from, int orientation, augment::Image& to);

// Where region of the upright image lies in the image as stored, which is width x height.
[[nodiscard]] augment::Region region_as_stored(const augment::Region& region, int orientation, int width, int height);

}  // namespace stoker::data
