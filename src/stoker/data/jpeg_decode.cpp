// SPDX-License-Identifier: Apache-2.0
// libjpeg reports errors by a callback that must not return, so it leaves by longjmp. Every frame that such a jump can
// skip is either C or a step_...() function below, and those have no object with a destructor; what needs one lives in
// JpegReader, which the caller owns.
#include "stoker/data/jpeg_decode.h"

#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it

#include "stoker/base/error.h"
#include "stoker/data/exif.h"

namespace stoker::data {
namespace {

struct JpegReader {
  explicit JpegReader(Bytes bytes);
  ~JpegReader() { jpeg_destroy_decompress(&info); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf escape{};
  char message[JMSG_LENGTH_MAX] = {};
  Bytes file;
  int max_scans = 0;
  augment::Image* out = nullptr;
  std::vector<std::uint8_t> cmyk;  // one row
};

JpegReader& reader_of(j_common_ptr info) { return *static_cast<JpegReader*>(info->client_data); }

[[noreturn]] void on_error(j_common_ptr info) {
  JpegReader& reader = reader_of(info);
  info->err->format_message(info, reader.message);
  std::longjmp(reader.escape, 1);
}

// Remarks about bytes that do no harm to the pixels; every other warning means that pixels are made up.
bool is_harmless(int code) {
  return code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR ||
         code == JWRN_BOGUS_PROGRESSION || code == JWRN_TOO_MUCH_DATA;
}

void on_message(j_common_ptr info, int level) {
  if (level >= 0) {
    return;  // a trace
  }
  ++info->err->num_warnings;
  if (!is_harmless(info->err->msg_code)) {
    on_error(info);
  }
}

void on_progress(j_common_ptr info) {
  JpegReader& reader = reader_of(info);
  if (reader.info.input_scan_number > reader.max_scans) {
    std::snprintf(reader.message, sizeof reader.message, "more than %d scans", reader.max_scans);
    std::longjmp(reader.escape, 1);
  }
}

JpegReader::JpegReader(Bytes bytes) : file(bytes) {
  info.err = jpeg_std_error(&errors);
  errors.error_exit = on_error;
  errors.emit_message = on_message;
  progress.progress_monitor = on_progress;
}

// True if step came to its end, false if libjpeg gave up on the way; message then says why.
bool guarded(JpegReader& reader, void (*step)(JpegReader&)) {
  if (setjmp(reader.escape) != 0) {
    return false;
  }
  step(reader);
  return true;
}

void step_header(JpegReader& reader) {
  jpeg_create_decompress(&reader.info);  // clears the struct but for err and client_data
  reader.info.client_data = &reader;
  jpeg_mem_src(&reader.info, reinterpret_cast<const unsigned char*>(reader.file.data()),
               static_cast<unsigned long>(reader.file.size()));
  jpeg_save_markers(&reader.info, JPEG_APP0 + 1, 0xFFFF);  // EXIF
  jpeg_read_header(&reader.info, TRUE);
}

void step_start(JpegReader& reader) {
  reader.info.progress = &reader.progress;
  jpeg_start_decompress(&reader.info);
}

// Row pixels of Adobe's inverted CMYK to RGB as Pillow's Convert.c does it: nk - MULDIV255(c, nk).
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
  const std::size_t bytes =
      static_cast<std::size_t>(reader.out->width) * static_cast<std::size_t>(reader.out->channels);
  while (info.output_scanline < info.output_height) {
    std::uint8_t* to = reader.out->pixels.data() + info.output_scanline * bytes;
    JSAMPROW row = reader.cmyk.empty() ? to : reader.cmyk.data();
    if (jpeg_read_scanlines(&info, &row, 1) == 1 && !reader.cmyk.empty()) {
      cmyk_to_rgb(reader.cmyk.data(), reader.out->width, to);
    }
  }
}

void run(JpegReader& reader, void (*step)(JpegReader&), std::string_view name) {
  if (!guarded(reader, step)) {
    const std::size_t left = reader.info.src != nullptr ? reader.info.src->bytes_in_buffer : 0;
    fail<DataError>("data.jpeg", "{}: damaged or unsupported JPEG at byte {} of {}: {}", name,
                    left <= reader.file.size() ? reader.file.size() - left : reader.file.size(), reader.file.size(),
                    reader.message);
  }
}

StoredPicture read_header(JpegReader& reader, std::string_view name) {
  run(reader, step_header, name);
  StoredPicture stored{static_cast<int>(reader.info.image_width), static_cast<int>(reader.info.image_height),
                       reader.info.num_components, 1};
  for (jpeg_saved_marker_ptr marker = reader.info.marker_list; marker != nullptr; marker = marker->next) {
    const Bytes data(reinterpret_cast<const std::byte*>(marker->data), marker->data_length);
    if (as_text(data).starts_with(std::string_view("Exif\0\0", 6))) {
      stored.orientation = exif_orientation(data.subspan(6));
      break;
    }
  }
  return stored;
}

}  // namespace

StoredPicture jpeg_header(Bytes file, std::string_view name) {
  JpegReader reader(file);
  return read_header(reader, name);
}

StoredPicture jpeg_decode(Bytes file, int channels, const DecodeLimits& limits, augment::Image& out,
                          std::string_view name) {
  JpegReader reader(file);
  const StoredPicture stored = read_header(reader, name);
  check_picture_size(stored.width, stored.height, limits, name);
  const bool four = reader.info.jpeg_color_space == JCS_CMYK || reader.info.jpeg_color_space == JCS_YCCK;
  reader.info.out_color_space = four ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  reader.max_scans = limits.max_scans;
  run(reader, step_start, name);
  out.reshape(stored.width, stored.height, four ? 3 : channels);
  reader.out = &out;
  if (four) {
    reader.cmyk.resize(static_cast<std::size_t>(stored.width) * 4);
  }
  run(reader, step_rows, name);
  return stored;
}

}  // namespace stoker::data
