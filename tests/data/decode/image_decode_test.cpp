// SPDX-License-Identifier: Apache-2.0
// Decoded images equal Pillow's. Files that are not images or that claim too large a size are refused with a reason.
#include "stoker/data/decode/image_decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "stoker/base/error.h"
#include "stoker/data/decode/exif.h"
#include "support/decode_checks.h"
#include "support/images.h"
#include "support/shared_data.h"

namespace stoker::data {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> image(const std::string& name) {
  std::vector<std::byte> bytes;
  read_file(testing::source_folder() / "tests/data/broken-images" / name, bytes);
  return bytes;
}

std::string error_of(Bytes bytes, const DecodeLimits& limits = {}) {
  augment::Image out;
  try {
    decode_image(bytes, 3, limits, out, "x.jpg");
  } catch (const DataError& error) {
    return error.what();
  }
  return "decoded";
}

TEST(ImageDecode, EqualsPillow) {
  EXPECT_EQ(testing::expect_goldens("images.tsv", testing::source_folder() / "tests/data/broken-images"), 25);
}

// PngSuite's basi0g16 (interlaced) has 16 bits per channel, of which the high 8 are kept.
TEST(ImageDecode, SixteenBitsKeepTheHighByte) {
  augment::Image out;
  decode_image(image("valid_but_unusual/pngsuite_basi0g16.png"), 1, {}, out, "g16");
  EXPECT_EQ(out.pixels.size(), 32u * 32u);
  // The ramp that PngSuite draws: 16-bit values run from 0 to 65535 over the image's columns and rows.
  EXPECT_EQ(*std::ranges::min_element(out.pixels), 0);
  EXPECT_GE(*std::ranges::max_element(out.pixels), 250);
  augment::Image grey;
  decode_image(image("valid_but_unusual/pngsuite_basi0g16.png"), 3, {}, grey, "g16");
  for (std::size_t i = 0; i < out.pixels.size(); ++i) {
    ASSERT_EQ(grey.pixels[3 * i], out.pixels[i]);
    ASSERT_EQ(grey.pixels[3 * i + 2], out.pixels[i]);
  }
}

TEST(ImageDecode, NamesWhatItCannotRead) {
  EXPECT_THAT(error_of({}), HasSubstr("x.jpg: is empty"));
  EXPECT_THAT(error_of(as_bytes("hello, world")), HasSubstr("is not an image (it begins with \"hello, world\")"));
  EXPECT_THAT(error_of(as_bytes("RIFF\x10\x01\x01\x01WEBPVP8 ")), HasSubstr("damaged or unsupported WebP"));
  EXPECT_THAT(error_of(as_bytes("GIF89a..........")), HasSubstr("unsupported format (GIF)"));
  EXPECT_THAT(error_of(image("made_here/hopper_cut_3000.jpg")), HasSubstr("damaged or unsupported JPEG at byte"));
  EXPECT_THAT(error_of(image("made_here/bomb_header_65500x65500.jpg")), HasSubstr("65500 x 65500"));
}

TEST(ImageDecode, LimitsHoldBeforeMemoryIsTaken) {
  const std::string file = testing::png_of(testing::computed_image(30, 20, 3));
  EXPECT_EQ(error_of(as_bytes(file), {.max_pixels = 600}), "decoded");
  EXPECT_THAT(error_of(as_bytes(file), {.max_pixels = 599}), HasSubstr("the limit is 599 pixels"));
  EXPECT_THAT(error_of(as_bytes(file), {.max_side = 29}), HasSubstr("29 per side"));
  const auto progressive = image("valid_but_unusual/progressive_test.jpg");
  EXPECT_EQ(error_of(progressive), "decoded");
  EXPECT_THAT(error_of(progressive, {.max_scans = 2}), HasSubstr("more than 2 scans"));
}

// Every truncation of a JPEG or a PNG ends in DataError, or in the complete image if only the very last bytes are
// missing. It never ends in a crash or in an image whose rest is grey.
TEST(ImageDecode, EveryTruncationIsSeen) {
  const auto jpeg = image("valid_but_unusual/hopper.jpg");
  augment::Image whole, out;
  decode_image(jpeg, 3, {}, whole, "hopper.jpg");
  for (std::size_t size = 0; size < jpeg.size(); size += size < 700 ? 1 : 37) {
    try {
      decode_image(Bytes(jpeg).first(size), 3, {}, out, "cut.jpg");
      EXPECT_EQ(out.pixels, whole.pixels) << size;
    } catch (const DataError&) {
    }
  }
  const std::string png = testing::png_of(testing::computed_image(31, 17, 3));
  // The last 16 bytes are the checksum of the pixels and the end chunk.
  for (std::size_t size = 0; size + 16 < png.size(); ++size) {
    EXPECT_NE(error_of(as_bytes(png).first(size)), "decoded") << size;
  }
}

// Colours at full and half resolution, grey, CMYK, progressive, PNG, and every orientation.
TEST(ImageDecode, APartIsThatPartOfTheWhole) {
  const auto folder = testing::source_folder() / "tests/data/broken-images";
  for (const char* kind : {"valid_but_unusual", "exif"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder / kind)) {
      testing::expect_parts_of(entry.path(), 3, 60);
      testing::expect_parts_of(entry.path(), 1, 20);
      for (const int shrink : {2, 4, 8}) {
        testing::expect_parts_of(entry.path(), 3, 30, shrink);
        testing::expect_parts_of(entry.path(), 1, 10, shrink);
      }
    }
  }
}

TEST(ImageDecode, APartIsThatPartOfTheWholeOfPhotographs) {
  const std::filesystem::path folder = testing::shared_data("imagenet-sample");
  if (folder.empty()) {
    GTEST_SKIP() << "needs imagenet-sample/ in STOKER_DATA";
  }
  int images = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && ++images % 5 == 0) {
      testing::expect_parts_of(entry.path(), 3, 4);
      testing::expect_parts_of(entry.path(), 3, 4, 2 << images / 5 % 3);
    }
  }
  EXPECT_GE(images, 200);
}

// A JPEG decoded at 1 / shrink of its size is nearly the mean of each block of pixels, also for rotated images. A
// rotated image is not shrunk if one of its sides is not divisible.
TEST(ImageDecode, AShrunkImageLiesWhereTheWholeOneDoes) {
  const auto folder = testing::source_folder() / "tests/data/formats";
  int shrunk = 0;
  for (const auto& [name, most] : {std::pair("smooth.jpg", 8), std::pair("smooth_turned_6.jpg", 8),
                                   std::pair("smooth_turned_3.jpg", 2), std::pair("lossy.webp", 1)}) {
    std::vector<std::byte> bytes;
    read_file(folder / name, bytes);
    augment::Image whole;
    decode_image(bytes, 3, {}, whole, name);
    ImageDecoder decoder;
    decoder.open(bytes, 3, {}, name);
    EXPECT_EQ(decoder.most_shrink(), most) << name;
    for (int by = 2; by <= most; by *= 2, ++shrunk) {
      const ImageDecoder::Size size = decoder.open(bytes, 3, {}, name);
      const int width = (size.width + by - 1) / by, height = (size.height + by - 1) / by;
      const augment::ImageView view = decoder.decode({0, 0, width, height}, name, by);
      int worst = 0;
      for (int y = 0; y < size.height / by; ++y) {
        for (int i = 0; i < size.width / by * 3; ++i) {
          int sum = 0;
          for (int k = 0; k < by * by; ++k) {
            sum += whole.view().row(y * by + k / by)[(i / 3 * by + k % by) * 3 + i % 3];
          }
          worst = std::max(worst, std::abs(view.row(y)[i] - sum / (by * by)));
        }
      }
      EXPECT_LE(worst, 4) << name << " at 1/" << by;
    }
  }
  EXPECT_EQ(shrunk, 7);
}

// Damage below the requested region is not detected; damage above it is.
TEST(ImageDecode, LooksNoFurtherThanTheRegion) {
  const auto jpeg = image("valid_but_unusual/hopper.jpg");
  const Bytes half = Bytes(jpeg).first(jpeg.size() / 2);
  ImageDecoder decoder;
  const ImageDecoder::Size size = decoder.open(half, 3, {}, "half");
  decoder.decode({0, 0, size.width, size.height / 8}, "half");
  decoder.open(half, 3, {}, "half");
  EXPECT_THROW(decoder.decode({0, size.height - 8, size.width, 8}, "half"), DataError);
  decoder.open(jpeg, 3, {}, "whole");  // the decoder works again after a failure
  EXPECT_EQ(decoder.decode({0, 0, size.width, size.height}, "whole").width, size.width);
}

// With strict=false, a truncated image keeps its first rows, and a wrong checksum is ignored. With strict=true, the
// error mentions that choice.
TEST(ImageDecode, WarningsCountAsStrictSays) {
  const auto jpeg = image("valid_but_unusual/hopper.jpg");
  const Bytes half = Bytes(jpeg).first(jpeg.size() / 2);
  EXPECT_THAT(error_of(half), HasSubstr("; this is only a warning, which strict=off accepts"));
  for (std::size_t bytes = 4; bytes < 1200; ++bytes) {  // also in the header: only where strict=off gives an image
    const Bytes part = half.first(bytes);
    EXPECT_TRUE(error_of(part).find("only a warning") == std::string::npos ||
                error_of(part, {.strict = false}) == "decoded")
        << bytes;
  }
  augment::Image whole, out;
  decode_image(jpeg, 3, {}, whole, "whole");
  decode_image(half, 3, {.strict = false}, out, "half");
  EXPECT_EQ(out.height, whole.height);
  EXPECT_TRUE(std::equal(out.pixels.begin(), out.pixels.begin() + 128 * 3 * 32, whole.pixels.begin()));
  EXPECT_NE(out.pixels, whole.pixels);
  EXPECT_THAT(error_of(half.first(100), {.strict = false}), HasSubstr("damaged or unsupported JPEG"));

  const augment::Image drawn = testing::computed_image(31, 17, 3);
  std::string png = testing::png_of(drawn);
  png[29] ^= 1;  // in the checksum of the header
  EXPECT_THAT(error_of(as_bytes(png)), HasSubstr("; this is only a warning, which strict=off accepts"));
  decode_image(as_bytes(png), 3, {.strict = false}, out, "checksum");
  EXPECT_EQ(out.pixels, drawn.pixels);
  EXPECT_THAT(error_of(as_bytes(png).first(png.size() / 2), {.strict = false}),
              HasSubstr("damaged or unsupported PNG"));
}

// The effect of undoing each orientation, worked out by hand on a 3 x 2 image.
TEST(Exif, TurnsUpright) {
  const augment::Image image{3, 2, 1, {1, 2, 3, 4, 5, 6}};
  const std::vector<std::vector<std::uint8_t>> expected = {{1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1},
                                                           {4, 5, 6, 1, 2, 3}, {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3},
                                                           {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    augment::Image upright;
    turn_upright(image.view(), orientation, upright);
    EXPECT_GE(upright.pixels.size(), 6U + augment::kSlack);  // bytes that a resize may read
    upright.pixels.resize(6);
    EXPECT_EQ(upright.pixels, expected[static_cast<std::size_t>(orientation - 1)]) << orientation;
    EXPECT_EQ(upright.width, orientation >= 5 ? 2 : 3);
  }
}

TEST(Exif, DamagedBlocksMeanUpright) {
  using namespace std::string_literals;
  const std::string good = "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"s;
  EXPECT_EQ(exif_orientation(as_bytes(good)), 6);
  EXPECT_EQ(exif_orientation(as_bytes("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x08\0\0"s)), 8);
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(exif_orientation(as_bytes(good).first(size)), 1) << size;
  }
  EXPECT_EQ(exif_orientation(as_bytes("II*\0\xFF\xFF\xFF\xFF\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"s)), 1);
  EXPECT_EQ(exif_orientation(as_bytes("II*\0\x08\0\0\0\xFF\xFF\x12\x01\x03\0\x01\0\0\0\x63\0\0\0"s)), 1);
}

}  // namespace
}  // namespace stoker::data
