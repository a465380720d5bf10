// SPDX-License-Identifier: Apache-2.0
// Makes a progressive JPEG of a baseline one, with the same coefficients and markers: for tests of what is only done
// with images that are not baseline. Thread-safe: no state. An error of libjpeg ends the process.
#pragma once

#include <cstdio>  // jpeglib.h needs it
#include <cstdlib>
#include <string>
#include <string_view>
// After <cstdio>.
#include <jpeglib.h>

namespace stoker::testing {

inline std::string as_progressive(std::string_view baseline) {
  constexpr int kApp1 = JPEG_APP0 + 1;
  jpeg_error_mgr errors{};
  jpeg_decompress_struct from{};
  jpeg_compress_struct to{};
  from.err = to.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&from);
  jpeg_create_compress(&to);
  jpeg_mem_src(&from, reinterpret_cast<const unsigned char*>(baseline.data()), baseline.size());
  jpeg_save_markers(&from, kApp1, 0xFFFF);
  jpeg_read_header(&from, TRUE);
  jvirt_barray_ptr* const coefficients = jpeg_read_coefficients(&from);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&to, &bytes, &size);
  jpeg_copy_critical_parameters(&from, &to);
  jpeg_simple_progression(&to);
  jpeg_write_coefficients(&to, coefficients);
  for (jpeg_saved_marker_ptr marker = from.marker_list; marker != nullptr; marker = marker->next) {
    jpeg_write_marker(&to, marker->marker, marker->data, marker->data_length);
  }
  jpeg_finish_compress(&to);
  const std::string made(reinterpret_cast<const char*>(bytes), size);
  jpeg_destroy_compress(&to);
  jpeg_destroy_decompress(&from);
  std::free(bytes);
  return made;
}

}  // namespace stoker::testing
