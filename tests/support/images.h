// SPDX-License-Identifier: Apache-2.0
// Images for tests: a computed image, the same as in tests/golden/make_images.py, PNG files of images, and the hash of
// the golden tables. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

#include "stoker/augment/image.h"
#include "stoker/base/file.h"
#include "stoker/data/decode/png_encode.h"

namespace stoker::testing {

inline std::filesystem::path source_folder() {
  const char* source = std::getenv("STOKER_SOURCE");
  return source != nullptr ? source : std::filesystem::path(__FILE__).parent_path().parent_path().parent_path();
}

// FNV-1a, 64 bits.
inline std::uint64_t fnv1a(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0xCBF29CE484222325;
  for (const std::uint8_t byte : bytes) {
    value = (value ^ byte) * 0x100000001B3;
  }
  return value;
}

// shift moves the colours, so that images differ.
inline augment::Image computed_image(int width, int height, int channels, int shift = 0) {
  augment::Image image;
  image.reshape(width, height, channels);
  std::uint8_t* out = image.pixels.data();
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        *out++ = static_cast<std::uint8_t>(x * 7 + y * 13 + c * 29 + (x * y) % 31 * 5 + ((x * x + y * 3) >> 3) + shift);
      }
    }
  }
  return image;
}

// The bytes of a PNG file; channels 1 or 3. Uses our own encoder. image_decode_test.cpp compares our decoder with
// Pillow, so an error in either one is found.
inline std::string png_of(const augment::Image& image) { return std::string(as_text(data::encode_png(image.view()))); }

// A small image. Other numbers give other images.
inline std::string small_png(int number, int width = 9, int height = 7) {
  return png_of(computed_image(width, height, 3, number * 37 + number / 7));
}

}  // namespace stoker::testing
