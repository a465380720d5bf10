// SPDX-License-Identifier: Apache-2.0
// The kinds of JPEG files that the tests of the decoder go through: every sampling, and every way to code the same
// image. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "support/jpeg_writer.h"

namespace stoker::testing {

// The samplings that nearly all files have.
inline std::vector<JpegKind> common_samplings() {
  return {{.name = "grey", .colours = JCS_GRAYSCALE, .factors = {{1, 1}}},
          {.name = "4:4:4"},
          {.name = "4:2:0", .factors = {{2, 2}, {1, 1}, {1, 1}}},
          {.name = "4:2:2", .factors = {{2, 1}, {1, 1}, {1, 1}}},
          {.name = "4:4:0", .factors = {{1, 2}, {1, 1}, {1, 1}}}};
}

// Samplings that a decoder meets once in its life.
inline std::vector<JpegKind> rare_samplings() {
  return {{.name = "4:1:1", .factors = {{4, 1}, {1, 1}, {1, 1}}},
          {.name = "1x4", .factors = {{1, 4}, {1, 1}, {1, 1}}},
          {.name = "4x2", .factors = {{4, 2}, {1, 1}, {1, 1}}},
          {.name = "3x1", .factors = {{3, 1}, {1, 1}, {1, 1}}},
          {.name = "1x3", .factors = {{1, 3}, {1, 1}, {1, 1}}},
          {.name = "chroma is larger", .factors = {{1, 1}, {2, 2}, {2, 2}}},
          {.name = "chroma is wider", .factors = {{1, 1}, {2, 1}, {2, 1}}},
          {.name = "only red is smaller", .factors = {{2, 2}, {2, 2}, {1, 1}}},
          {.name = "blue across, red down", .factors = {{2, 2}, {1, 2}, {2, 1}}},
          {.name = "luma 2x2, chroma 1x2", .factors = {{2, 2}, {1, 2}, {1, 2}}},
          {.name = "luma 2x2, chroma 2x1", .factors = {{2, 2}, {2, 1}, {2, 1}}},
          {.name = "all 2x2 of one", .colours = JCS_GRAYSCALE, .factors = {{2, 2}}},
          {.name = "all 2x1", .factors = {{2, 1}, {2, 1}, {2, 1}}},
          {.name = "all 1x2", .factors = {{1, 2}, {1, 2}, {1, 2}}},
          {.name = "grey 3x1", .colours = JCS_GRAYSCALE, .factors = {{3, 1}}},
          {.name = "two components", .colours = JCS_UNKNOWN, .factors = {{1, 1}, {1, 1}}},
          {.name = "CMYK", .colours = JCS_CMYK, .factors = {{1, 1}, {1, 1}, {1, 1}, {1, 1}}},
          {.name = "YCCK", .colours = JCS_YCCK, .factors = {{2, 2}, {1, 1}, {1, 1}, {2, 2}}}};
}

// Files whose colour space is guessed from markers and names of components.
inline std::vector<JpegKind> colour_spaces() {
  const std::vector<std::array<int, 2>> halved = {{2, 2}, {1, 1}, {1, 1}};
  return {{.name = "RGB, Adobe marker", .colours = JCS_RGB},
          {.name = "RGB, 2x2", .colours = JCS_RGB, .factors = halved},
          {.name = "RGB, no marker", .colours = JCS_RGB, .adobe = 0},
          {.name = "RGB, JFIF", .colours = JCS_RGB, .jfif = 1, .adobe = 0},
          {.name = "RGB, JFIF and Adobe", .colours = JCS_RGB, .jfif = 1, .adobe = 1},
          {.name = "YCbCr, no marker", .factors = halved, .jfif = 0},
          {.name = "YCbCr, Adobe marker", .factors = halved, .jfif = 0, .adobe = 1},
          {.name = "YCbCr, both markers", .factors = halved, .adobe = 1},
          {.name = "names 0, 1, 2", .factors = halved, .jfif = 0, .names = {7, 8, 9, 0}},
          {.name = "names R, G, B", .jfif = 0, .names = {'R', 'G', 'B', 0}},
          {.name = "names R, G, B with JFIF", .names = {'R', 'G', 'B', 0}},
          {.name = "names in another order", .names = {3, 1, 2, 0}},
          {.name = "unknown colours", .colours = JCS_UNKNOWN},
          {.name = "CMYK, no marker", .colours = JCS_CMYK, .factors = {{1, 1}, {1, 1}, {1, 1}, {1, 1}}, .adobe = 0}};
}

// Other codings of a kind: tables, scans, restart markers.
inline std::vector<JpegKind> codings_of(const JpegKind& kind) {
  std::vector<JpegKind> all;
  const auto add = [&](const char* name, auto change) {
    all.push_back(kind);
    change(all.back());
    all.back().name += std::string(", ") + name;
  };
  add("optimized", [](JpegKind& to) { to.optimized = true; });
  add("a table each", [](JpegKind& to) { to.own_tables = true; });
  add("one table", [](JpegKind& to) { to.one_table = true; });
  add("16-bit tables", [](JpegKind& to) { to.wide_tables = true; });
  add("restart at each MCU", [](JpegKind& to) { to.restart = 1; });
  add("restart at 3 MCUs", [](JpegKind& to) { to.restart = 3; });
  add("restart at each row", [](JpegKind& to) { to.restart_rows = 1; });
  add("restart at 2 rows", [](JpegKind& to) { to.restart_rows = 2, to.optimized = true; });
  add("restart beyond the end", [](JpegKind& to) { to.restart = 60000; });
  add("scans apart", [](JpegKind& to) { to.apart = true; });
  add("scans apart, restart", [](JpegKind& to) { to.apart = true, to.restart = 2, to.optimized = true; });
  add("progressive", [](JpegKind& to) { to.progressive = true; });
  add("progressive, restart", [](JpegKind& to) { to.progressive = true, to.restart = 2; });
  add("arithmetic", [](JpegKind& to) { to.arithmetic = true; });
  add("arithmetic, restart", [](JpegKind& to) { to.arithmetic = true, to.restart = 2; });
  add("arithmetic, progressive", [](JpegKind& to) { to.arithmetic = true, to.progressive = true; });
  return all;
}

}  // namespace stoker::testing
