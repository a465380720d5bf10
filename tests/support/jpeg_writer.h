// SPDX-License-Identifier: Apache-2.0
// Writes JPEG files of every kind that libjpeg-turbo can write: sampling factors, tables, scans, restart markers,
// progressive and arithmetic coding, and coefficients that no picture has. For tests of the decoder and for the seeds
// of its fuzz target. Thread-safe: no state. An error of libjpeg ends the process.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>  // jpeglib.h needs it
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>
// After <cstdio>.
#include <jpeglib.h>

namespace stoker::testing {

// A small generator that is fast without optimization: xorshift64*.
class QuickRandom {
 public:
  explicit QuickRandom(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15 + 1) {}
  std::uint32_t operator()() {
    state_ ^= state_ >> 12, state_ ^= state_ << 25, state_ ^= state_ >> 27;
    return static_cast<std::uint32_t>((state_ * 0x2545F4914F6CDD1D) >> 32);
  }
  // 0 ... n - 1; n must be positive.
  int below(int n) { return static_cast<int>((*this)() % static_cast<std::uint32_t>(n)); }

 private:
  std::uint64_t state_;
};

enum class JpegContent {
  kSmooth,        // slopes
  kNoise,         // every sample random
  kSaturated,     // 0 and 255 in random rectangles
  kScene,         // slopes, edges and a little noise
  kFlat,          // blocks of one colour: only DC
  kCoefficients,  // random coefficients up to the limits of the format: runs of zeros, full blocks, 16-bit codes
};
inline constexpr int kJpegContents = 6;

// How a file is written. Pixels are made in the stored colour space, so colours are not converted.
struct JpegKind {
  std::string name;
  J_COLOR_SPACE colours = JCS_YCbCr;  // stored; its number of components is that of factors
  std::vector<std::array<int, 2>> factors = {{1, 1}, {1, 1}, {1, 1}};  // across and down, per component
  bool progressive = false;
  bool arithmetic = false;
  bool optimized = false;      // Huffman tables for this image
  bool apart = false;          // one scan per component
  bool own_tables = false;     // a quantisation and Huffman table per component; needs optimized
  bool one_table = false;      // all components use the tables of the first
  bool wide_tables = false;    // quantisation tables may have 16 bits
  int restart = 0;             // MCUs between restart markers; 0: none
  int restart_rows = 0;        // the same in rows of MCUs
  int jfif = -1;               // whether there is a JFIF header; -1: as libjpeg does for these colours
  int adobe = -1;              // the same for an Adobe marker
  std::array<int, 4> names{};  // ids of the components; 0: as libjpeg does
};

namespace jpeg_writer {

inline void fill(std::vector<std::uint8_t>& pixels, int width, int height, int components, JpegContent content,
                 QuickRandom& random) {
  const int slope[] = {random.below(9) - 4, random.below(9) - 4, random.below(7) - 3, random.below(5)};
  const int begin = random.below(256), edge = 3 + random.below(11);
  std::uint8_t* out = pixels.data();
  std::uint32_t patch[4] = {};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      if (x % edge == 0 || content == JpegContent::kNoise) {
        for (int c = 0; c < components; ++c) {
          patch[c] = content == JpegContent::kFlat && y % 8 != 0 ? patch[c] : random();
        }
      }
      for (int c = 0; c < components; ++c) {
        const int ramp = begin + slope[c % 4] * x + slope[(c + 1) % 4] * y + 40 * c;
        switch (content) {
          case JpegContent::kSmooth: *out++ = static_cast<std::uint8_t>(std::clamp(ramp, 0, 255)); break;
          case JpegContent::kNoise: *out++ = static_cast<std::uint8_t>(patch[c] >> 7); break;
          case JpegContent::kSaturated: *out++ = (patch[c] & 1) != 0 ? 255 : 0; break;
          case JpegContent::kScene:
            *out++ = static_cast<std::uint8_t>(std::clamp(ramp / 2 + (x / edge + y / edge) % 2 * 70, 0, 240) +
                                               static_cast<int>(patch[c] % 13));
            break;
          default: *out++ = static_cast<std::uint8_t>((x / 8 * 83 + y / 8 * 57 + c * 91 + begin) & 255); break;
        }
      }
    }
  }
}

inline void fill(JCOEF* block, QuickRandom& random) {
  const int style = random.below(8);
  const int range = 1 << (1 + random.below(10));  // up to 1,024
  const auto value = [&] { return static_cast<JCOEF>(std::clamp(random.below(2 * range) - range, -1023, 1023)); };
  block[0] = static_cast<JCOEF>(style < 3 ? random.below(2047) - 1023 : random.below(64));
  if (style == 1) {
    block[63] = value();  // three runs of 16 zeros
  }
  const int gap = style == 2 ? 1 : style >= 6 ? 20 : 2 + random.below(12);
  for (int k = style < 2 ? 64 : 1 + random.below(gap); k < 64; k += 1 + (gap > 1 ? random.below(gap) : 0)) {
    block[k] = value();
    if (style > 3 && random.below(6) == 0) {
      break;
    }
  }
}

inline void set_up(jpeg_compress_struct& info, const JpegKind& kind, int quality) {
  jpeg_set_defaults(&info);
  jpeg_set_colorspace(&info, kind.colours);
  jpeg_set_quality(&info, quality, kind.wide_tables ? FALSE : TRUE);
  for (int c = 0; c < info.num_components; ++c) {
    jpeg_component_info& facts = info.comp_info[c];
    facts.h_samp_factor = kind.factors[static_cast<std::size_t>(c)][0];
    facts.v_samp_factor = kind.factors[static_cast<std::size_t>(c)][1];
    if (kind.own_tables || kind.one_table) {
      facts.dc_tbl_no = facts.ac_tbl_no = facts.quant_tbl_no = kind.own_tables ? c : 0;
    }
    if (kind.own_tables && info.quant_tbl_ptrs[c] == nullptr) {
      info.quant_tbl_ptrs[c] = jpeg_alloc_quant_table(reinterpret_cast<j_common_ptr>(&info));
      std::copy_n(info.quant_tbl_ptrs[0]->quantval, DCTSIZE2, info.quant_tbl_ptrs[c]->quantval);
      std::rotate(info.quant_tbl_ptrs[c]->quantval, info.quant_tbl_ptrs[c]->quantval + 5,
                  info.quant_tbl_ptrs[c]->quantval + DCTSIZE2);
    }
    const int id = kind.names[static_cast<std::size_t>(c)];
    facts.component_id = id != 0 ? id : facts.component_id;
  }
  info.write_JFIF_header = static_cast<boolean>(kind.jfif >= 0 ? kind.jfif : info.write_JFIF_header);
  info.write_Adobe_marker = static_cast<boolean>(kind.adobe >= 0 ? kind.adobe : info.write_Adobe_marker);
  info.arith_code = static_cast<boolean>(kind.arithmetic);
  info.optimize_coding = static_cast<boolean>(kind.optimized || kind.own_tables);
  info.restart_interval = static_cast<unsigned>(kind.restart);
  info.restart_in_rows = kind.restart_rows;
  if (kind.progressive) {
    jpeg_simple_progression(&info);
  }
}

inline std::vector<jpeg_scan_info> scans_apart(int components) {
  std::vector<jpeg_scan_info> scans;
  for (int c = 0; c < components; ++c) {
    scans.push_back({.comps_in_scan = 1, .component_index = {c}, .Ss = 0, .Se = 63, .Ah = 0, .Al = 0});
  }
  return scans;
}

inline void write_coefficients(jpeg_compress_struct& info, QuickRandom& random) {
  int across = 1, down = 1;  // the largest factors
  for (int c = 0; c < info.num_components; ++c) {
    across = std::max(across, info.comp_info[c].h_samp_factor);
    down = std::max(down, info.comp_info[c].v_samp_factor);
  }
  const auto blocks = [](JDIMENSION side, int factor, int largest) {
    const auto one = static_cast<JDIMENSION>(8 * largest), units = (side + one - 1) / one;
    return units * static_cast<JDIMENSION>(factor);
  };
  std::vector<jvirt_barray_ptr> arrays;
  const auto common = reinterpret_cast<j_common_ptr>(&info);
  for (int c = 0; c < info.num_components; ++c) {
    const jpeg_component_info& facts = info.comp_info[c];
    arrays.push_back(info.mem->request_virt_barray(
        common, JPOOL_IMAGE, TRUE, blocks(info.image_width, facts.h_samp_factor, across),
        blocks(info.image_height, facts.v_samp_factor, down), static_cast<JDIMENSION>(facts.v_samp_factor)));
  }
  jpeg_write_coefficients(&info, arrays.data());
  for (int c = 0; c < info.num_components; ++c) {
    const jpeg_component_info& facts = info.comp_info[c];
    const JDIMENSION columns = blocks(info.image_width, facts.h_samp_factor, across);
    for (JDIMENSION y = 0; y < blocks(info.image_height, facts.v_samp_factor, down); ++y) {
      JBLOCKARRAY row = info.mem->access_virt_barray(common, arrays[static_cast<std::size_t>(c)], y, 1, TRUE);
      for (JDIMENSION x = 0; x < columns; ++x) {
        fill(row[0][x], random);
      }
    }
  }
  jpeg_finish_compress(&info);
}

inline void write_pixels(jpeg_compress_struct& info, JpegContent content, QuickRandom& random) {
  const auto width = static_cast<int>(info.image_width), height = static_cast<int>(info.image_height);
  const auto stride = static_cast<std::size_t>(width * info.input_components);
  std::vector<std::uint8_t> pixels(stride * static_cast<std::size_t>(height));
  fill(pixels, width, height, info.input_components, content, random);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = pixels.data() + stride * info.next_scanline;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
}

}  // namespace jpeg_writer

// The bytes of a file. quality: 1 ... 100. Equal arguments give equal bytes.
inline std::vector<std::byte> written_jpeg(const JpegKind& kind, int width, int height, int quality,
                                           JpegContent content, std::uint64_t seed) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  QuickRandom random(seed);
  info.err = jpeg_std_error(&errors);  // prints an error and ends the process
  errors.emit_message = [](j_common_ptr, int) {};
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = static_cast<int>(kind.factors.size());
  info.in_color_space = kind.colours;
  jpeg_writer::set_up(info, kind, quality);
  const std::vector<jpeg_scan_info> scans = jpeg_writer::scans_apart(info.num_components);
  if (kind.apart) {
    info.scan_info = scans.data();
    info.num_scans = info.num_components;
  }
  if (content == JpegContent::kCoefficients) {
    jpeg_writer::write_coefficients(info, random);
  } else {
    jpeg_writer::write_pixels(info, content, random);
  }
  jpeg_destroy_compress(&info);
  const std::unique_ptr<unsigned char, decltype(&std::free)> owner(bytes, &std::free);
  const auto* first = reinterpret_cast<const std::byte*>(bytes);
  return {first, first + size};
}

}  // namespace stoker::testing
