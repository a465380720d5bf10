// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/image_decode.h"

#include <array>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/data/exif.h"
#include "stoker/data/jpeg_decode.h"
#include "stoker/data/png_decode.h"

namespace stoker::data {
namespace {

struct Signature {
  std::size_t offset;
  std::string_view bytes;
  std::string_view format;
};
using namespace std::string_view_literals;
constexpr std::array kSignatures = {
    Signature{0, "\xFF\xD8\xFF"sv, "JPEG"},
    Signature{0, "\x89PNG\r\n\x1A\n"sv, "PNG"},
    Signature{8, "WEBP"sv, "WebP"},
    Signature{0, "GIF8"sv, "GIF"},
    Signature{0, "BM"sv, "BMP"},
    Signature{0, "II*\0"sv, "TIFF"},
    Signature{0, "MM\0*"sv, "TIFF"},
    Signature{4, "ftyp"sv, "AVIF or HEIC"},
    Signature{0, "\xFF\x0A"sv, "JPEG XL"},
    Signature{0, "\0\0\0\x0CJXL "sv, "JPEG XL"},
    Signature{0, "\0\0\0\x0CjP  "sv, "JPEG 2000"},
};

// "JPEG" or "PNG"; DataError for everything else.
std::string_view readable_format(Bytes file, std::string_view name) {
  if (file.empty()) {
    fail<DataError>("data.decode", "{}: is empty (0 bytes); a JPEG or PNG picture is expected", name);
  }
  const std::string_view format = picture_format(file);
  if (format.empty()) {
    fail<DataError>("data.decode", "{}: is no picture (it begins with \"{}\"); JPEG or PNG is expected", name,
                    printable(as_text(file.first(std::min<std::size_t>(file.size(), 12)))));
  }
  if (format != "JPEG" && format != "PNG") {
    fail<DataError>("data.decode", "{}: unsupported format ({}); convert it to JPEG or PNG", name, format);
  }
  return format;
}

// RGB to luma in place: ITU-R 601-2 in 16 bits of fraction, as Pillow's convert("L").
void to_luma(augment::Image& image) {
  const std::size_t pixels = image.pixels.size() / 3;
  for (std::size_t i = 0; i < pixels; ++i) {
    const std::uint8_t* rgb = image.pixels.data() + i * 3;
    image.pixels[i] = static_cast<std::uint8_t>((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
  }
  image.reshape(image.width, image.height, 1);
}

}  // namespace

std::string_view picture_format(Bytes head) {
  const std::string_view text = as_text(head);
  for (const Signature& signature : kSignatures) {
    if (text.size() >= signature.offset && text.substr(signature.offset).starts_with(signature.bytes)) {
      return signature.format;
    }
  }
  return {};
}

void check_picture_size(std::int64_t width, std::int64_t height, const DecodeLimits& limits, std::string_view name) {
  if (width < 1 || height < 1) {
    fail<DataError>("data.decode", "{}: the header says {} x {} pixels", name, width, height);
  }
  if (width > limits.max_side || height > limits.max_side || width * height > limits.max_pixels) {
    fail<DataError>("data.decode", "{}: the header says {} x {} pixels; the limit is {} pixels, {} a side", name, width,
                    height, limits.max_pixels, limits.max_side);
  }
}

ImageInfo probe_image(Bytes file, const DecodeLimits& limits, std::string_view name) {
  const std::string_view format = readable_format(file, name);
  const StoredPicture stored = format == "JPEG" ? jpeg_header(file, name) : png_header(file, limits, name);
  check_picture_size(stored.width, stored.height, limits, name);
  ImageInfo info{format, stored.width, stored.height, stored.channels};
  if (stored.orientation >= 5) {
    std::swap(info.width, info.height);
  }
  return info;
}

void decode_image(Bytes file, int channels, const DecodeLimits& limits, augment::Image& out, std::string_view name) {
  if (channels != 1 && channels != 3) {
    fail<ConfigError>("data.decode", "pictures have 1 or 3 channels, got {}", channels);
  }
  const std::string_view format = readable_format(file, name);
  const StoredPicture stored =
      format == "JPEG" ? jpeg_decode(file, channels, limits, out, name) : png_decode(file, channels, limits, out, name);
  if (out.channels == 3 && channels == 1) {
    to_luma(out);
  }
  if (stored.orientation != 1) {
    augment::Image upright;
    turn_upright(out, stored.orientation, upright);
    std::swap(out, upright);
  }
}

}  // namespace stoker::data
