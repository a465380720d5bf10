// SPDX-License-Identifier: Apache-2.0
// As in jpeg_decode.cpp, libjpeg errors use longjmp, so no frame that it can skip has an object with a destructor.
#include "stoker/data/decode/jpeg_encode.h"

#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it
#include <cstdlib>
// After <cstdio>.
#include <jpeglib.h>

#include "stoker/base/error.h"

namespace stoker::data {
namespace {

// Everything that a longjmp must not skip.
struct Writer {
  Writer() {
    info.err = jpeg_std_error(&errors);
    errors.error_exit = [](j_common_ptr common) {
      auto& writer = *static_cast<Writer*>(common->client_data);
      common->err->format_message(common, writer.message);
      std::longjmp(writer.escape, 1);
    };
    errors.emit_message = [](j_common_ptr, int) {};
    info.client_data = this;
  }
  ~Writer() {
    jpeg_destroy_compress(&info);
    std::free(bytes);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  std::jmp_buf escape{};
  char message[JMSG_LENGTH_MAX] = {};
  unsigned char* bytes = nullptr;  // allocated by libjpeg with malloc
  unsigned long size = 0;
};

void write(Writer& writer, const augment::ImageView& image, int quality) {
  jpeg_compress_struct& info = writer.info;
  jpeg_create_compress(&info);  // keeps err and client_data
  jpeg_mem_dest(&info, &writer.bytes, &writer.size);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.input_components = image.channels;
  info.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  info.optimize_coding = TRUE;
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = const_cast<JSAMPROW>(image.row(static_cast<int>(info.next_scanline)));  // libjpeg only reads it
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
}

bool guarded_write(Writer& writer, const augment::ImageView& image, int quality) {
  if (setjmp(writer.escape) != 0) {
    return false;
  }
  write(writer, image, quality);
  return true;
}

}  // namespace

std::vector<std::byte> encode_jpeg(const augment::ImageView& image, int quality) {
  Writer writer;
  if (!guarded_write(writer, image, quality)) {
    fail<Error>("data.jpeg", "an image of {} x {} cannot be encoded: {}", image.width, image.height, writer.message);
  }
  const auto* first = reinterpret_cast<const std::byte*>(writer.bytes);
  return {first, first + writer.size};
}

}  // namespace stoker::data
