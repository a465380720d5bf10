// SPDX-License-Identifier: Apache-2.0
// The encoder writes the image, except for the losses of JPEG; also for a rectangle within a wider image. These tests
// use the decoder, which image_decode_test.cpp compares with Pillow.
#include "stoker/data/decode/jpeg_encode.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "stoker/base/error.h"
#include "stoker/data/decode/image_decode.h"
#include "support/images.h"

namespace stoker::data {
namespace {

// A smooth image, which suits JPEG; every channel is different.
augment::Image slopes(int width, int height, int channels) {
  augment::Image image;
  image.reshape(width, height, channels);
  std::uint8_t* out = image.pixels.data();
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        *out++ = static_cast<std::uint8_t>(40 + 2 * x + (c + 1) * y);
      }
    }
  }
  return image;
}

TEST(JpegEncode, PixelsComeBackNearly) {
  for (const int channels : {1, 3}) {
    const augment::Image image = slopes(40, 24, channels);
    augment::Image back;
    const augment::ImageView part = image.view().part(3, 2, 33, 20);
    decode_image(encode_jpeg(part, 95), channels, {}, back, "jpeg");
    ASSERT_EQ(back.width, 33);
    ASSERT_EQ(back.height, 20);
    ASSERT_EQ(probe_image(encode_jpeg(part, 95), {}, "jpeg").channels, channels);
    for (int y = 0; y < 20; ++y) {
      for (int x = 0; x < 33 * channels; ++x) {
        EXPECT_LE(std::abs(back.view().row(y)[x] - part.row(y)[x]), 8) << x << " " << y;
      }
    }
  }
}

TEST(JpegEncode, QualityIsBytes) {
  const augment::Image image = testing::computed_image(64, 64, 3);
  EXPECT_LT(encode_jpeg(image.view(), 40).size(), encode_jpeg(image.view(), 90).size());
}

TEST(JpegEncode, RefusesAnEmptyImage) {
  augment::Image image;
  image.reshape(0, 0, 3);
  EXPECT_THROW((void)encode_jpeg(image.view(), 80), Error);
}

}  // namespace
}  // namespace stoker::data
