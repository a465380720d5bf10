// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/decode/png_decode.h"

#include <spng.h>

#include <memory>
#include <new>

#include "stoker/base/error.h"
#include "stoker/data/decode/exif.h"

namespace stoker::data {
namespace {

// Chunks other than pixels (profiles, texts) may be compressed and claim to be huge.
constexpr std::size_t kMaxChunk = std::size_t{16} << 20;   // bytes per chunk
constexpr std::size_t kMaxChunks = std::size_t{64} << 20;  // bytes of all chunks

struct FreeContext {
  void operator()(spng_ctx* context) const { spng_ctx_free(context); }
};
using Context = std::unique_ptr<spng_ctx, FreeContext>;

void require(int code, std::string_view name) {
  if (code == SPNG_EMEM) {  // says nothing about the image
    throw std::bad_alloc();
  }
  if (code != 0) {
    fail<DataError>("data.png", "{}: damaged or unsupported PNG: {}{}", name, spng_strerror(code),
                    code == SPNG_ECHUNK_CRC ? kOnlyAWarning : "");
  }
}

int channels_of(int colour_type) {
  switch (colour_type) {
    case SPNG_COLOR_TYPE_GRAYSCALE: return 1;
    case SPNG_COLOR_TYPE_GRAYSCALE_ALPHA: return 2;
    case SPNG_COLOR_TYPE_TRUECOLOR_ALPHA: return 4;
    default: return 3;  // colours or a palette
  }
}

struct OpenPng {
  Context context;
  spng_ihdr header{};
  StoredImage stored;
};

OpenPng open(Bytes file, const DecodeLimits& limits, std::string_view name) {
  OpenPng png{Context(spng_ctx_new(limits.strict ? 0 : SPNG_CTX_IGNORE_ADLER32)), {}, {}};
  if (!png.context) {
    throw std::bad_alloc();
  }
  // A wrong checksum in a text or a profile does not affect pixels.
  spng_set_crc_action(png.context.get(), limits.strict ? SPNG_CRC_ERROR : SPNG_CRC_USE, SPNG_CRC_DISCARD);
  spng_set_chunk_limits(png.context.get(), kMaxChunk, kMaxChunks);
  require(spng_set_png_buffer(png.context.get(), file.data(), file.size()), name);
  require(spng_get_ihdr(png.context.get(), &png.header), name);
  check_image_size(png.header.width, png.header.height, limits, name);
  png.stored = {static_cast<int>(png.header.width), static_cast<int>(png.header.height),
                channels_of(png.header.color_type), 1};
  return png;
}

// The orientation read so far, unless there is none or the last chunk is damaged.
int orientation_of(spng_ctx* context, int otherwise = 1) {
  spng_exif exif{};
  if (spng_get_exif(context, &exif) != 0) {
    return otherwise;
  }
  return exif_orientation({reinterpret_cast<const std::byte*>(exif.data), exif.length});
}

}  // namespace

StoredImage png_header(Bytes file, const DecodeLimits& limits, std::string_view name) {
  OpenPng png = open(file, limits, name);
  png.stored.orientation = orientation_of(png.context.get());
  return png.stored;
}

StoredImage png_decode(Bytes file, int channels, const DecodeLimits& limits, augment::Image& out,
                       std::string_view name) {
  OpenPng png = open(file, limits, name);
  // libspng gives one grey channel only for pure grey with at most 8 bits.
  const bool plain_grey = png.stored.channels == 1 && png.header.bit_depth <= 8;
  const bool one = channels == 1 && plain_grey;
  spng_exif before{};
  if (const int code = spng_get_exif(png.context.get(), &before); code != SPNG_ECHUNKAVAIL) {
    require(code, name);
    png.stored.orientation = orientation_of(png.context.get());
  }
  out.reshape(png.stored.width, png.stored.height, one ? 1 : 3);
  require(
      spng_decode_image(png.context.get(), out.pixels.data(), out.pixels.size(), one ? SPNG_FMT_G8 : SPNG_FMT_RGB8, 0),
      name);
  // EXIF may follow the pixels; damage there is ignored, strict or not.
  spng_set_crc_action(png.context.get(), SPNG_CRC_USE, SPNG_CRC_DISCARD);
  spng_decode_chunks(png.context.get());
  png.stored.orientation = orientation_of(png.context.get(), png.stored.orientation);
  return png.stored;
}

}  // namespace stoker::data
