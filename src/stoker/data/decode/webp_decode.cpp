// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/decode/webp_decode.h"

#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <memory>
#include <new>

#include "stoker/base/error.h"
#include "stoker/data/decode/exif.h"
#include "stoker/data/decode/image_decode.h"

namespace stoker::data {
namespace {

// Extra pixels on each side of the region: upsampling uses neighbouring pixels, so pixels at the edge of the decoded
// part differ from the pixels of the whole image. Even, since libwebp crops at even pixels.
constexpr int kMargin = 2;
constexpr std::size_t kDemuxerBytes = 4096;                  // more than a demuxer with a frame needs
constexpr std::int64_t kLosslessBytes = 4, kAlphaBytes = 5;  // per pixel, kept for the whole frame

struct DeleteDemuxer {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};
using Demuxer = std::unique_ptr<WebPDemuxer, DeleteDemuxer>;

const std::uint8_t* bytes_of(Bytes bytes) { return reinterpret_cast<const std::uint8_t*>(bytes.data()); }

[[noreturn]] void fail_damaged(std::string_view name, std::string_view why) {
  fail<DataError>("data.webp", "{}: damaged or unsupported WebP: {}", name, why);
}

std::string_view words_of(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_UNSUPPORTED_FEATURE: return "unknown feature";
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA: return "the pixel data is truncated";
    default: return "the pixel data is damaged";
  }
}

void require(VP8StatusCode status, std::string_view name) {
  if (status == VP8_STATUS_OUT_OF_MEMORY) {  // says nothing about the image; its size was checked
    throw std::bad_alloc();
  }
  if (status != VP8_STATUS_OK) {
    fail_damaged(name, words_of(status));
  }
}

// The chunks of a complete file.
Demuxer chunks_of(Bytes file, std::string_view name) {
  const WebPData data{bytes_of(file), file.size()};
  WebPDemuxState state = WEBP_DEMUX_PARSE_ERROR;
  Demuxer demuxer(WebPDemuxPartial(&data, &state));
  if (state == WEBP_DEMUX_PARSE_ERROR) {
    // The same state means no memory for the demuxer: std::bad_alloc then.
    ::operator delete(::operator new(kDemuxerBytes));
    fail_damaged(name, "its chunks are inconsistent");
  }
  if (!demuxer || state != WEBP_DEMUX_DONE) {
    fail_damaged(name, fmt::format("it is truncated after {} bytes", file.size()));
  }
  return demuxer;
}

int orientation_of(const WebPDemuxer* demuxer) {
  WebPChunkIterator chunk{};
  if (WebPDemuxGetChunk(demuxer, "EXIF", 1, &chunk) == 0) {
    return 1;
  }
  Bytes data(reinterpret_cast<const std::byte*>(chunk.chunk.bytes), chunk.chunk.size);
  constexpr std::string_view kPrefix("Exif\0\0", 6);  // from JPEG; some programs also write it here
  if (as_text(data).starts_with(kPrefix)) {
    data = data.subspan(kPrefix.size());
  }
  const int orientation = exif_orientation(data);
  WebPDemuxReleaseChunkIterator(&chunk);
  return orientation;
}

}  // namespace

StoredImage WebpDecoder::open(Bytes file, std::string_view name) {
  const Demuxer demuxer = chunks_of(file, name);
  width_ = static_cast<int>(WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH));
  height_ = static_cast<int>(WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT));
  WebPIterator frame{};
  if (WebPDemuxGetFrame(demuxer.get(), 1, &frame) == 0) {
    fail_damaged(name, "it contains no image");
  }
  frame_ = {reinterpret_cast<const std::byte*>(frame.fragment.bytes), frame.fragment.size};  // within file
  place_ = {frame.x_offset, frame.y_offset, frame.width, frame.height};
  WebPDemuxReleaseIterator(&frame);
  WebPBitstreamFeatures features{};
  require(WebPGetFeatures(bytes_of(frame_), frame_.size(), &features), name);
  constexpr int kLossless = 2;
  const std::int64_t bytes = features.format == kLossless ? kLosslessBytes : features.has_alpha != 0 ? kAlphaBytes : 0;
  memory_ = bytes * place_.width * place_.height;
  return {width_, height_, features.has_alpha != 0 ? 4 : 3, orientation_of(demuxer.get())};
}

void WebpDecoder::check_memory(const DecodeLimits& limits, std::string_view name) const {
  if (memory_ > limits.max_memory) {
    fail<DataError>("data.webp", "{}: decoding {} x {} pixels needs {} bytes of memory; the limit is {}", name, width_,
                    height_, memory_, limits.max_memory);
  }
}

augment::ImageView WebpDecoder::decode(const augment::Region& region, const DecodeLimits& limits,
                                       std::string_view name) {
  check_memory(limits, name);
  const bool covers = place_ == augment::Region{0, 0, width_, height_};
  augment::Region part{0, 0, width_, height_};
  if (covers) {  // otherwise the whole frame is drawn on a black canvas
    part.left = std::max(region.left - kMargin, 0) / 2 * 2;
    part.top = std::max(region.top - kMargin, 0) / 2 * 2;
    part.width = std::min(region.left + region.width + kMargin, width_) - part.left;
    part.height = std::min(region.top + region.height + kMargin, height_) - part.top;
  }
  const std::size_t stride = static_cast<std::size_t>(part.width) * 3;
  const std::size_t bytes = stride * static_cast<std::size_t>(part.height);
  pixels_.resize(std::max(pixels_.size(), bytes + augment::kSlack));
  std::size_t offset = 0;
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) {
    fail<DataError>("data.webp",
                    "{}: libwebp on this machine has another version than Stoker was built with; rebuild Stoker", name);
  }
  if (covers) {
    config.options.use_cropping = 1;
    config.options.crop_left = part.left;
    config.options.crop_top = part.top;
    config.options.crop_width = part.width;
    config.options.crop_height = part.height;
  } else {
    std::fill_n(pixels_.begin(), bytes, std::uint8_t{0});
    offset = static_cast<std::size_t>(place_.top) * stride + static_cast<std::size_t>(place_.left) * 3;
  }
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {pixels_.data() + offset, static_cast<int>(stride), bytes - offset};
  const VP8StatusCode status = WebPDecode(bytes_of(frame_), frame_.size(), &config);
  WebPFreeDecBuffer(&config.output);
  require(status, name);
  const augment::ImageView decoded{.pixels = pixels_.data(),
                                   .width = part.width,
                                   .height = part.height,
                                   .channels = 3,
                                   .stride = static_cast<std::ptrdiff_t>(stride)};
  return decoded.as_part_of(width_, height_, part.left, part.top);
}

}  // namespace stoker::data
