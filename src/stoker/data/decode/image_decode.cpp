// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/decode/image_decode.h"

#include <algorithm>
#include <array>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/data/decode/exif.h"
#include "stoker/data/decode/png_decode.h"

namespace stoker::data {
namespace {

constexpr std::string_view kJpeg = "JPEG", kPng = "PNG", kWebp = "WebP", kNpy = "npy";
constexpr std::array kReadable = {kJpeg, kPng, kWebp, kNpy};

struct Signature {
  std::size_t offset;
  std::string_view bytes;
  std::string_view format;
};
using namespace std::string_view_literals;
constexpr std::array kSignatures = {
    Signature{0, "\xFF\xD8\xFF"sv, kJpeg},
    Signature{0, "\x89PNG\r\n\x1A\n"sv, kPng},
    Signature{8, "WEBP"sv, kWebp},
    Signature{0, "\x93NUMPY"sv, kNpy},
    Signature{0, "GIF8"sv, "GIF"},
    Signature{0, "BM"sv, "BMP"},
    Signature{0, "II*\0"sv, "TIFF"},
    Signature{0, "MM\0*"sv, "TIFF"},
    Signature{4, "ftyp"sv, "AVIF or HEIC"},
    Signature{0, "\xFF\x0A"sv, "JPEG XL"},
    Signature{0, "\0\0\0\x0CJXL "sv, "JPEG XL"},
    Signature{0, "\0\0\0\x0CjP  "sv, "JPEG 2000"},
};

// One of kReadable; DataError for everything else.
std::string_view readable_format(Bytes file, std::string_view name) {
  if (file.empty()) {
    fail<DataError>("data.decode", "{}: is empty (0 bytes); expected an image: {}", name, fmt::join(kReadable, ", "));
  }
  const std::string_view format = image_format(file);
  if (format.empty()) {
    fail<DataError>("data.decode", "{}: is not an image (it begins with \"{}\"); expected {}", name,
                    printable(as_text(file.first(std::min<std::size_t>(file.size(), 12)))), fmt::join(kReadable, ", "));
  }
  if (std::ranges::find(kReadable, format) == kReadable.end()) {
    fail<DataError>("data.decode", "{}: unsupported format ({}); convert it to JPEG or PNG", name, format);
  }
  return format;
}

// RGB to luma: ITU-R 601-2 in 16 bits of fraction, as Pillow's convert("L").
void to_luma(augment::ImageView rgb, augment::Image& grey) {
  grey.reshape(rgb.width, rgb.height, 1, augment::kSlack);
  std::uint8_t* out = grey.pixels.data();
  for (int y = 0; y < rgb.height; ++y) {
    const std::uint8_t* in = rgb.row(y);
    for (int x = 0; x < rgb.width; ++x, in += 3) {
      *out++ = static_cast<std::uint8_t>((in[0] * 19595u + in[1] * 38470u + in[2] * 7471u + 0x8000u) >> 16);
    }
  }
}

}  // namespace

std::string_view image_format(Bytes head) {
  const std::string_view text = as_text(head);
  for (const Signature& signature : kSignatures) {
    if (text.size() >= signature.offset && text.substr(signature.offset).starts_with(signature.bytes)) {
      return signature.format;
    }
  }
  return {};
}

void check_image_size(std::int64_t width, std::int64_t height, const DecodeLimits& limits, std::string_view name) {
  if (width < 1 || height < 1) {
    fail<DataError>("data.decode", "{}: the header says {} x {} pixels", name, width, height);
  }
  if (width > limits.max_side || height > limits.max_side || width * height > limits.max_pixels) {
    fail<DataError>("data.decode", "{}: the header says {} x {} pixels; the limit is {} pixels, {} per side", name,
                    width, height, limits.max_pixels, limits.max_side);
  }
}

ImageInfo probe_image(Bytes file, const DecodeLimits& limits, std::string_view name) {
  const std::string_view format = readable_format(file, name);
  const StoredImage stored = format == kJpeg   ? JpegDecoder(JpegPath::kLibrary).open(file, limits.strict, name)
                             : format == kWebp ? WebpDecoder().open(file, name)
                             : format == kNpy  ? open_npy(file, name).stored
                                               : png_header(file, limits, name);
  check_image_size(stored.width, stored.height, limits, name);
  ImageInfo info{format, stored.width, stored.height, stored.channels};
  info.orientation = stored.orientation;
  if (stored.orientation >= 5) {
    std::swap(info.width, info.height);
  }
  return info;
}

ImageDecoder::Size ImageDecoder::open(Bytes file, int channels, const DecodeLimits& limits, std::string_view name) {
  if (channels != 1 && channels != 3) {
    fail<ConfigError>("data.decode", "channels must be 1 or 3, got {}", channels);
  }
  channels_ = channels;
  limits_ = limits;
  format_ = readable_format(file, name);
  if (format_ == kNpy) {
    npy_ = open_npy(file, name);
  }
  stored_ = format_ == kJpeg   ? jpeg_.open(file, limits.strict, name)
            : format_ == kNpy  ? npy_.stored
            : format_ == kWebp ? webp_.open(file, name)
                               : png_decode(file, channels, limits, whole_, name);
  check_image_size(stored_.width, stored_.height, limits, name);
  size_ = {stored_.width, stored_.height};
  if (stored_.orientation >= 5) {
    std::swap(size_.width, size_.height);
  }
  return size_;
}

// A side that is not divisible is rounded up at the end of the stored image, which may be the start of the rotated
// image. Then positions in the shrunk image would not be positions of the whole image, divided.
int ImageDecoder::most_shrink() const {
  int shrink = format_ == kJpeg ? 8 : 1;
  while (stored_.orientation != 1 && (stored_.width % shrink != 0 || stored_.height % shrink != 0)) {
    shrink /= 2;
  }
  return shrink;
}

bool ImageDecoder::shrinking_pays() const { return format_ == kJpeg && !jpeg_.is_baseline(); }

augment::ImageView ImageDecoder::decode_stored(const augment::Region& region, int shrink, std::string_view name,
                                               JpegRows* rows) {
  if (format_ == kJpeg) {
    return jpeg_.decode(region, channels_, shrink, limits_, name, rows);
  }
  if (format_ == kNpy) {
    npy_part(npy_, region, channels_, whole_);
    return whole_.view().as_part_of(stored_.width, stored_.height, region.left, region.top);
  }
  return format_ == kWebp ? webp_.decode(region, limits_, name) : whole_.view();
}

augment::ImageView ImageDecoder::decode(const augment::Region& region, std::string_view name, int shrink,
                                        JpegRows* rows) {
  const auto shrunk = [&](int side) { return (side + shrink - 1) / shrink; };
  const augment::Region wanted =
      region_as_stored(region, stored_.orientation, shrunk(stored_.width), shrunk(stored_.height));
  augment::ImageView view =
      decode_stored(wanted, shrink, name, rows).part(wanted.left, wanted.top, wanted.width, wanted.height);
  if (view.channels == 3 && channels_ == 1) {
    to_luma(view, grey_);
    view = grey_.view();
  }
  if (stored_.orientation != 1) {
    turn_upright(view, stored_.orientation, turned_);
    view = turned_.view();
  }
  return view.as_part_of(shrunk(size_.width), shrunk(size_.height), region.left, region.top);
}

void decode_image(Bytes file, int channels, const DecodeLimits& limits, augment::Image& out, std::string_view name) {
  ImageDecoder decoder;
  const ImageDecoder::Size size = decoder.open(file, channels, limits, name);
  const augment::ImageView all = decoder.decode({0, 0, size.width, size.height}, name);
  out.reshape(size.width, size.height, all.channels);
  const auto bytes = static_cast<std::size_t>(size.width) * static_cast<std::size_t>(all.channels);
  for (int y = 0; y < size.height; ++y) {
    std::copy_n(all.row(y), bytes, out.pixels.data() + static_cast<std::size_t>(y) * bytes);
  }
}

}  // namespace stoker::data
