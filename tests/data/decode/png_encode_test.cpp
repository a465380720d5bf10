// SPDX-License-Identifier: Apache-2.0
// Pixels are the same after encoding and decoding, also for a rectangle within a wider image. These tests use the
// decoder, which image_decode_test.cpp compares with Pillow.
#include "stoker/data/decode/png_encode.h"

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/data/decode/image_decode.h"
#include "support/images.h"

namespace stoker::data {
namespace {

TEST(PngEncode, PixelsComeBack) {
  for (const int channels : {1, 3}) {
    const augment::Image image = testing::computed_image(13, 7, channels, 5);
    augment::Image back;
    const std::vector<std::byte> file = encode_png(image.view());
    EXPECT_EQ(probe_image(file, {}, "png").channels, channels);
    decode_image(file, channels, {}, back, "png");
    EXPECT_EQ(back.width, 13);
    EXPECT_EQ(back.pixels, image.pixels);
    decode_image(encode_png(image.view().part(2, 1, 5, 4)), channels, {}, back, "png");
    ASSERT_EQ(back.pixels.size(), static_cast<std::size_t>(5 * 4 * channels));
    for (int y = 0; y < 4; ++y) {
      for (int x = 0; x < 5 * channels; ++x) {
        EXPECT_EQ(back.pixels[static_cast<std::size_t>(y * 5 * channels + x)],
                  image.view().row(1 + y)[2 * channels + x]);
      }
    }
  }
}

TEST(PngEncode, RefusesAnEmptyImage) {
  augment::Image image;
  image.reshape(0, 0, 3);
  EXPECT_THROW((void)encode_png(image.view()), Error);
}

}  // namespace
}  // namespace stoker::data
