// SPDX-License-Identifier: Apache-2.0
// WebP is decoded to Pillow's pixels, and a part of an image to that part of them. Damage ends in an error that names
// the file.
#include "stoker/data/decode/webp_decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "stoker/base/error.h"
#include "stoker/data/decode/image_decode.h"
#include "support/decode_checks.h"
#include "support/images.h"

namespace stoker::data {
namespace {

using ::testing::HasSubstr;

std::filesystem::path folder() { return testing::source_folder() / "tests/data/formats"; }

std::vector<std::byte> image(const std::string& name) {
  std::vector<std::byte> bytes;
  read_file(folder() / name, bytes);
  return bytes;
}

std::string error_of(Bytes bytes, const DecodeLimits& limits = {}) {
  augment::Image out;
  try {
    decode_image(bytes, 3, limits, out, "x.webp");
  } catch (const DataError& error) {
    return error.what();
  }
  return "decoded";
}

std::vector<std::filesystem::path> webp_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (entry.path().extension() == ".webp") {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

TEST(WebpDecode, EqualsPillow) {
  EXPECT_EQ(testing::expect_goldens("formats.tsv", folder()), 42);  // 26 for WebP, 16 for .npy
}

TEST(WebpDecode, APartIsThatPartOfTheWhole) {
  for (const auto& file : webp_files()) {
    testing::expect_parts_of(file, 3, 150);
    testing::expect_parts_of(file, 1, 20);
  }
}

TEST(WebpDecode, TellsWhatItsHeaderSays) {
  const ImageInfo lossy = probe_image(image("lossy.webp"), {}, "lossy");
  EXPECT_EQ(lossy.format, "WebP");
  EXPECT_EQ(lossy.channels, 3);
  EXPECT_EQ(probe_image(image("lossless_alpha.webp"), {}, "alpha").channels, 4);
}

TEST(WebpDecode, LimitsHoldBeforeMemoryIsTaken) {
  EXPECT_THAT(error_of(image("lossy.webp"), {.max_pixels = 101 * 107 - 1}), HasSubstr("101 x 107 pixels; the limit"));
  EXPECT_THAT(error_of(image("lossy.webp"), {.max_side = 106}), HasSubstr("106 per side"));
  EXPECT_THAT(error_of(image("lossless.webp"), {.max_memory = 61 * 43 * 4 - 1}), HasSubstr("10492 bytes of memory"));
  EXPECT_EQ(error_of(image("lossless.webp"), {.max_memory = 61 * 43 * 4}), "decoded");
  std::vector<std::byte> huge = image("animation.webp");  // bytes 24 ... 29: its canvas, width - 1 and height - 1
  constexpr std::array<unsigned char, 6> kCanvas = {0xFE, 0xFF, 0, 0x5F, 0xEA, 0};
  std::ranges::transform(kCanvas, huge.begin() + 24, [](unsigned char c) { return std::byte{c}; });
  EXPECT_THAT(error_of(huge), HasSubstr("65535 x 60000 pixels; the limit"));
}

TEST(WebpDecode, EveryTruncationIsSeen) {
  for (const auto& file : webp_files()) {
    const auto bytes = image(file.filename());
    for (std::size_t size = 12; size < bytes.size(); size += size < 200 ? 1 : 23) {
      EXPECT_THAT(error_of(Bytes(bytes).first(size)), HasSubstr("x.webp: damaged or unsupported WebP"))
          << file << " cut to " << size;
    }
  }
}

// The headers are changed to the truncated length, so that the missing bytes are only noticed while decoding pixels.
TEST(WebpDecode, MissingPixelsAreSeen) {
  for (const char* name : {"lossy.webp", "lossless.webp"}) {
    std::vector<std::byte> bytes = image(name);
    const std::size_t size = bytes.size() / 2 / 2 * 2;
    bytes.resize(size);
    const auto put = [&](std::size_t at, std::size_t value) {
      for (std::size_t i = 0; i < 4; ++i) {
        bytes[at + i] = static_cast<std::byte>(value >> (8 * i) & 0xFF);
      }
    };
    put(4, size - 8);
    put(16, size - 20);
    EXPECT_THAT(error_of(bytes), HasSubstr("x.webp: damaged or unsupported WebP")) << name;
  }
}

// Decoding ends in an image or a DataError, never in a crash.
TEST(WebpDecode, FlippedBytesEndWell) {
  std::mt19937 random(5);
  int errors = 0, tries = 0;
  for (const auto& file : webp_files()) {
    const auto good = image(file.filename());
    for (int i = 0; i < 200; ++i, ++tries) {
      auto bad = good;
      for (int k = 0; k < 1 + i % 3; ++k) {
        bad[random() % (i % 2 == 0 ? std::min<std::size_t>(bad.size(), 64) : bad.size())] =
            static_cast<std::byte>(random() & 0xFF);
      }
      errors += error_of(bad, {.max_pixels = 1'000'000}) == "decoded" ? 0 : 1;
    }
  }
  EXPECT_GT(errors, tries / 10);
}

}  // namespace
}  // namespace stoker::data
