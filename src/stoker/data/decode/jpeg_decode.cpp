// SPDX-License-Identifier: Apache-2.0
// libjpeg reports errors through a callback that must not return, so the callback uses longjmp. Every frame that such a
// jump can skip is either C, or a callback or a step_...() function below without objects that have a destructor. Such
// objects are in JpegDecoder::Reader, which the caller owns.
#include "stoker/data/decode/jpeg_decode.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it
#include <new>
// After <cstdio>.
#include <jerror.h>
#include <jpeglib.h>

#include "stoker/base/error.h"
#include "stoker/data/decode/exif.h"
#include "stoker/data/decode/image_decode.h"
#include "stoker/data/decode/jpeg_baseline.h"

namespace stoker::data {
namespace {

// Extra pixels on each side of the region: upsampling uses neighbouring pixels, so pixels at the edge of the decoded
// part differ from the pixels of the whole image.
constexpr int kMargin = 2;
// libjpeg-turbo seems to bypass the cache for rows that begin at multiples of 32 bytes, but the resize reads them
// again.
constexpr std::size_t kRowUnit = 32, kRowOffset = 16;
constexpr std::string_view kExif("Exif\0\0", 6);

}  // namespace

// Everything that a longjmp must not skip.
struct JpegDecoder::Reader {
  Reader();
  ~Reader() { jpeg_destroy_decompress(&info); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf escape{};
  char message[JMSG_LENGTH_MAX] = {};
  Bytes file;
  Bytes exif;  // content of the first segment that says so
  int max_scans = 0;
  bool strict = true;
  bool only_warned = false;        // message is only a warning
  bool no_memory = false;          // malloc failed, which says nothing about the image
  augment::Region region;          // requested
  JDIMENSION left = 0, width = 0;  // of the decoded part
  std::uint8_t* rows = nullptr;    // of region, `width` pixels each
  std::size_t stride = 0;          // bytes
  std::vector<std::uint8_t> cmyk;  // one row
  bool needs_all = false;          // no part to the left, to the right or above the region may be skipped
};

namespace {

using JpegReader = JpegDecoder::Reader;

JpegReader& reader_of(j_common_ptr info) { return *static_cast<JpegReader*>(info->client_data); }

[[noreturn]] void give_up(j_common_ptr info, bool only_warned) {
  JpegReader& reader = reader_of(info);
  info->err->format_message(info, reader.message);
  reader.only_warned = only_warned;
  const int place = info->err->msg_parm.i[0];  // in jmemmgr.c; the other places refuse a request for its size
  reader.no_memory = info->err->msg_code == JERR_OUT_OF_MEMORY && (place == 0 || place == 2 || place == 4);
  std::longjmp(reader.escape, 1);
}

[[noreturn]] void on_error(j_common_ptr info) { give_up(info, false); }

// Warnings that do not affect pixels; every other warning means that pixels are guessed.
bool is_harmless(int code) {
  return code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR ||
         code == JWRN_BOGUS_PROGRESSION || code == JWRN_TOO_MUCH_DATA;
}

void on_message(j_common_ptr info, int level) {
  if (level >= 0) {
    return;  // trace message
  }
  ++info->err->num_warnings;
  JpegReader& reader = reader_of(info);
  if (reader.strict && !is_harmless(info->err->msg_code)) {
    // If the file ends before the first scan, libjpeg would go on to an error: there is no image.
    give_up(info, info->err->msg_code != JWRN_JPEG_EOF || reader.info.input_scan_number > 0);
  }
}

void on_progress(j_common_ptr info) {
  JpegReader& reader = reader_of(info);
  if (reader.info.input_scan_number > reader.max_scans) {
    std::snprintf(reader.message, sizeof reader.message, "more than %d scans", reader.max_scans);
    reader.only_warned = false;
    reader.no_memory = false;
    std::longjmp(reader.escape, 1);
  }
}

// True if step finished, false if libjpeg failed; message then has the reason.
bool guarded(JpegReader& reader, void (*step)(JpegReader&)) {
  if (setjmp(reader.escape) != 0) {
    return false;
  }
  step(reader);
  return true;
}

// Skips a segment APP1, and notes the first one with EXIF. libjpeg-turbo could keep them all, but copies them byte by
// byte: 30 us for a thumbnail of 20 kB.
boolean on_app1(j_decompress_ptr info) {
  jpeg_source_mgr& source = *info->src;
  long length = -2;
  for (const long weight : {256, 1}) {
    if (source.bytes_in_buffer == 0) {
      source.fill_input_buffer(info);  // warns
    }
    length += weight * *source.next_input_byte++;
    --source.bytes_in_buffer;
  }
  if (length > 0) {
    const Bytes content(reinterpret_cast<const std::byte*>(source.next_input_byte),
                        std::min(static_cast<std::size_t>(length), source.bytes_in_buffer));
    Bytes& exif = reader_of(reinterpret_cast<j_common_ptr>(info)).exif;
    if (exif.empty() && as_text(content).starts_with(kExif)) {
      exif = content;
    }
    source.skip_input_data(info, length);
  }
  return TRUE;
}

void step_header(JpegReader& reader) {
  reader.exif = {};
  // A new one for each image: an aborted one keeps its tables, and an image without tables would be decoded with the
  // tables of the previous image.
  jpeg_destroy_decompress(&reader.info);
  jpeg_create_decompress(&reader.info);  // clears the struct except err and client_data
  jpeg_mem_src(&reader.info, reinterpret_cast<const unsigned char*>(reader.file.data()),
               static_cast<unsigned long>(reader.file.size()));
  jpeg_set_marker_processor(&reader.info, JPEG_APP0 + 1, on_app1);
  jpeg_read_header(&reader.info, TRUE);
}

// Whether pixels depend on parts that a crop or a skip leaves out. libjpeg smooths missing scans of a progressive image
// from neighbouring blocks; and it does not skip rows exactly if colours are sampled with factors other than 1 and 2.
bool needs_all(const jpeg_decompress_struct& info) {
  for (int component = 0; component < info.num_components; ++component) {
    const jpeg_component_info& facts = info.comp_info[component];
    if (facts.h_samp_factor > 2 || facts.v_samp_factor > 2) {
      return true;
    }
    const int* missing = info.coef_bits == nullptr ? nullptr : info.coef_bits[component];  // per coefficient; -1: all
    if (missing != nullptr && std::any_of(missing, missing + DCTSIZE2, [](int bits) { return bits != 0; })) {
      return true;
    }
  }
  return false;
}

void step_start(JpegReader& reader) {
  reader.info.progress = &reader.progress;
  jpeg_start_decompress(&reader.info);
  reader.needs_all = needs_all(reader.info);
  const auto all = static_cast<int>(reader.info.output_width);
  const int left = std::max(reader.region.left - kMargin, 0);
  const int right = std::min(reader.region.left + reader.region.width + kMargin, all);
  reader.left = static_cast<JDIMENSION>(left);
  reader.width = static_cast<JDIMENSION>(right - left);
  if (reader.needs_all) {
    reader.left = 0;
    reader.width = reader.info.output_width;
  } else if (right - left < all) {
    jpeg_crop_scanline(&reader.info, &reader.left, &reader.width);  // moves left to the start of a block
  }
}

// Converts a row of Adobe's inverted CMYK to RGB as in Pillow's Convert.c: nk - MULDIV255(c, nk).
void cmyk_to_rgb(const std::uint8_t* cmyk, int width, std::uint8_t* rgb) {
  for (int x = 0; x < width; ++x, cmyk += 4) {
    const int light = cmyk[3];  // 255 - black
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - cmyk[c]) * light + 128;
      const int dark = ((product >> 8) + product) >> 8;
      *rgb++ = static_cast<std::uint8_t>(light > dark ? light - dark : 0);
    }
  }
}

void step_rows(JpegReader& reader) {
  jpeg_decompress_struct& info = reader.info;
  if (reader.region.top > 0 && !reader.needs_all) {
    jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(reader.region.top));
  }
  std::uint8_t* to = reader.rows;
  for (int above = reader.needs_all ? reader.region.top : 0; above > 0;) {
    JSAMPROW row = reader.cmyk.empty() ? to : reader.cmyk.data();
    above -= static_cast<int>(jpeg_read_scanlines(&info, &row, 1));
  }
  for (int y = 0; y < reader.region.height;) {
    JSAMPROW row = reader.cmyk.empty() ? to : reader.cmyk.data();
    if (jpeg_read_scanlines(&info, &row, 1) == 1) {
      if (!reader.cmyk.empty()) {
        cmyk_to_rgb(reader.cmyk.data(), static_cast<int>(reader.width), to);
      }
      to += reader.stride;
      ++y;
    }
  }
}

void run(JpegReader& reader, void (*step)(JpegReader&), std::string_view name) {
  if (!guarded(reader, step)) {
    if (reader.no_memory) {
      throw std::bad_alloc();
    }
    const std::size_t left = reader.info.src != nullptr ? reader.info.src->bytes_in_buffer : 0;
    fail<DataError>("data.jpeg", "{}: damaged or unsupported JPEG at byte {} of {}: {}{}", name,
                    left <= reader.file.size() ? reader.file.size() - left : reader.file.size(), reader.file.size(),
                    reader.message, reader.only_warned ? kOnlyAWarning : "");
  }
}

}  // namespace

JpegDecoder::Reader::Reader() {
  info.err = jpeg_std_error(&errors);
  info.client_data = this;
  errors.error_exit = on_error;
  errors.emit_message = on_message;
  progress.progress_monitor = on_progress;
}

JpegDecoder::JpegDecoder(JpegPath path)
    : baseline_(path == JpegPath::kLibrary ? nullptr : std::make_unique<BaselineJpeg>()),
      reader_(std::make_unique<Reader>()) {}
JpegDecoder::~JpegDecoder() = default;

StoredImage JpegDecoder::open(Bytes file, bool strict, std::string_view name) {
  Reader& reader = *reader_;
  reader.strict = strict;
  reader.file = file;
  is_baseline_ = takes_baseline_ = false;
  run(reader, step_header, name);
  const std::optional<BaselineHeader> baseline = baseline_header(reader.info, file.size());
  is_baseline_ = baseline.has_value();
  takes_baseline_ = is_baseline_ && baseline_ && baseline_->open(*baseline, file);
  return {static_cast<int>(reader.info.image_width), static_cast<int>(reader.info.image_height),
          reader.info.num_components, reader.exif.empty() ? 1 : exif_orientation(reader.exif.subspan(kExif.size()))};
}

augment::ImageView JpegDecoder::decode(const augment::Region& region, int channels, int shrink,
                                       const DecodeLimits& limits, std::string_view name, JpegRows* rows) {
  Reader& reader = *reader_;
  if (takes_baseline_ && shrink == 1) {
    if (const std::optional<augment::ImageView> decoded = baseline_->decode(region, channels, rows)) {
      return *decoded;
    }
  }
  jpeg_decompress_struct& info = reader.info;
  const bool four = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = four ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  info.mem->max_memory_to_use = static_cast<long>(limits.max_memory);
  info.scale_num = 1;
  info.scale_denom = static_cast<unsigned>(shrink);  // by smaller inverse transforms
  reader.max_scans = limits.max_scans;
  reader.region = region;
  run(reader, step_start, name);
  const int made = four ? 3 : channels;
  const std::size_t bytes = std::size_t{reader.width} * static_cast<std::size_t>(made);
  reader.stride = (bytes + kRowUnit - 1) / kRowUnit * kRowUnit;
  const std::size_t room =
      reader.stride * static_cast<std::size_t>(region.height) + kRowUnit + kRowOffset + augment::kSlack;
  pixels_.resize(std::max(pixels_.size(), room));
  const auto address = reinterpret_cast<std::uintptr_t>(pixels_.data());
  reader.rows = pixels_.data() + ((kRowUnit - address % kRowUnit) % kRowUnit + kRowOffset);
  reader.cmyk.resize(four ? std::size_t{reader.width} * 4 : 0);
  run(reader, step_rows, name);
  const augment::ImageView decoded{.pixels = reader.rows,
                                   .width = static_cast<int>(reader.width),
                                   .height = region.height,
                                   .channels = made,
                                   .stride = static_cast<std::ptrdiff_t>(reader.stride)};
  return decoded.as_part_of(static_cast<int>(info.output_width), static_cast<int>(info.output_height),
                            static_cast<int>(reader.left), region.top);
}

}  // namespace stoker::data
