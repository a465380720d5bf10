// SPDX-License-Identifier: Apache-2.0
// Where the rows of a baseline JPEG begin in its entropy-coded data. A decoder that knows them starts at any row. Made
// by ImageDecoder, kept by data::RowIndex.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace stoker::data {

// Beginning of one row of MCUs (minimum coded units: 8 or 16 pixels high).
struct JpegRow {
  std::uint32_t bit = 0;             // from the start of the scan, stuffed bytes not counted
  std::array<std::int16_t, 3> dc{};  // the DC predictor of each component
  bool operator==(const JpegRow&) const = default;
};

// The rows 0, 1, ... as far as they are known; empty: nothing is known. Wrong values give wrong pixels or an error, as
// wrong bytes of the file do, and are never read beyond the file.
using JpegRows = std::vector<JpegRow>;

}  // namespace stoker::data
