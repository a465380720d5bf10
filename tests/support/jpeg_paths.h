// SPDX-License-Identifier: Apache-2.0
// Decodes a file by both decoders of JPEG and compares size, channels, pixels and the text of an error. The truth is
// libjpeg-turbo (JpegPath::kLibrary). For tests of the data room. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/data/decode/image_decode.h"
#include "support/jpeg_writer.h"

namespace stoker::testing {

// What to decode.
struct JpegAsked {
  int channels = 3;
  bool strict = true;
  int shrink = 1;
  std::uint64_t region = 0;  // 0: the whole image; else drawn_region() of it
};

// A rectangle within an image: a pixel, a row, a column, a part at an edge or a corner, or anything else.
inline augment::Region drawn_region(int width, int height, std::uint64_t choice) {
  QuickRandom random(choice);
  augment::Region region{random.below(width), random.below(height), 1, 1};
  const int kind = random.below(8);
  if (kind == 1 || kind == 2) {  // whole rows
    region.left = 0, region.width = width;
    region.height = kind == 1 ? 1 : 1 + random.below(height - region.top);
  } else if (kind == 3 || kind == 4) {  // whole columns
    region.top = 0, region.height = height;
    region.width = kind == 3 ? 1 : 1 + random.below(width - region.left);
  } else if (kind != 0) {
    region.width = 1 + random.below(width - region.left);
    region.height = 1 + random.below(height - region.top);
  }
  if (kind == 5) {  // at the right and lower edge
    region.left = width - region.width, region.top = height - region.height;
  } else if (kind == 6) {
    region.left = 0, region.top = 0;
  }
  return region;
}

// The first choices for drawn_region() that end above line `bottom`.
inline std::vector<std::uint64_t> choices_above(int bottom, int width, int height, std::size_t count) {
  std::vector<std::uint64_t> choices;
  for (std::uint64_t choice = 1; choices.size() < count; ++choice) {
    const augment::Region region = drawn_region(width, height, choice);
    if (region.top + region.height <= bottom) {
      choices.push_back(choice);
    }
  }
  return choices;
}

// What came of it.
struct JpegOutcome {
  std::string error;  // empty: an image
  augment::Region region;
  int width = 0, height = 0, channels = 0;  // of the whole image
  std::vector<std::uint8_t> pixels;         // of the region
};

inline JpegOutcome jpeg_outcome(data::ImageDecoder& decoder, Bytes file, const JpegAsked& asked, data::JpegRows* rows,
                                const data::DecodeLimits& limits = {}) {
  JpegOutcome out;
  try {
    data::DecodeLimits as_asked = limits;
    as_asked.strict = asked.strict;
    const data::ImageDecoder::Size size = decoder.open(file, asked.channels, as_asked, "x.jpg");
    const int shrink = std::min(asked.shrink, decoder.most_shrink());
    const int width = (size.width + shrink - 1) / shrink, height = (size.height + shrink - 1) / shrink;
    out.region = asked.region == 0 ? augment::Region{0, 0, width, height} : drawn_region(width, height, asked.region);
    const augment::ImageView view = decoder.decode(out.region, "x.jpg", shrink, rows);
    out.width = view.width, out.height = view.height, out.channels = view.channels;
    const auto bytes = static_cast<std::size_t>(out.region.width * view.channels);
    // The bytes beyond a row of a JPEG may be read, too, which AddressSanitizer checks.
    const std::size_t beyond = data::image_format(file) == "JPEG" ? augment::kSlack : 0;
    out.pixels.reserve(bytes * static_cast<std::size_t>(out.region.height) + beyond);
    for (int y = out.region.top; y < out.region.top + out.region.height; ++y) {
      const std::uint8_t* row = view.row(y) + std::ptrdiff_t{out.region.left} * view.channels;
      out.pixels.insert(out.pixels.end(), row, row + bytes + beyond);
      out.pixels.resize(out.pixels.size() - beyond);
    }
  } catch (const DataError& error) {
    out.error = error.what();
  }
  return out;
}

// The difference in words; empty if there is none.
inline std::string jpeg_difference(const JpegOutcome& truth, const JpegOutcome& got) {
  if (truth.error != got.error) {
    return "library: " + (truth.error.empty() ? "an image" : truth.error) +
           "\nfastest: " + (got.error.empty() ? "an image" : got.error);
  }
  if (truth.width != got.width || truth.height != got.height || truth.channels != got.channels) {
    return "library: " + std::to_string(truth.width) + " x " + std::to_string(truth.height) + " x " +
           std::to_string(truth.channels) + ", fastest: " + std::to_string(got.width) + " x " +
           std::to_string(got.height) + " x " + std::to_string(got.channels);
  }
  if (truth.pixels == got.pixels) {
    return "";
  }
  const auto at = static_cast<int>(std::ranges::mismatch(truth.pixels, got.pixels).in1 - truth.pixels.begin());
  const int pixel = at / truth.channels;
  return "channel " + std::to_string(at % truth.channels) + " of pixel " +
         std::to_string(truth.region.left + pixel % truth.region.width) + ", " +
         std::to_string(truth.region.top + pixel / truth.region.width) + " is " +
         std::to_string(truth.pixels[static_cast<std::size_t>(at)]) + " by the library and " +
         std::to_string(got.pixels[static_cast<std::size_t>(at)]) + " by the fastest";
}

// The segments of a header that define Huffman tables.
inline std::vector<std::byte> huffman_segments(Bytes file) {
  std::vector<std::byte> segments;
  for (std::size_t at = 2; at + 4 <= file.size() && file[at + 1] != std::byte{0xDA};) {
    const std::size_t size =
        2 + (std::to_integer<std::size_t>(file[at + 2]) << 8) + std::to_integer<std::size_t>(file[at + 3]);
    if (file[at + 1] == std::byte{0xC4}) {
      const Bytes segment = file.subspan(at, std::min(size, file.size() - at));
      segments.insert(segments.end(), segment.begin(), segment.end());
    }
    at += size;
  }
  return segments;
}

// Shows the file to the decoder, which gives a small image to libjpeg-turbo unless it has seen its Huffman tables
// before. Each decode may show it those of one component. The next decode of the file then does not depend on earlier
// files.
inline void show_tables(data::ImageDecoder& decoder, Bytes file, const data::DecodeLimits& limits) {
  data::JpegRows rows;
  for (int component = 0; component < 3 && rows.empty(); ++component) {
    try {
      (void)decoder.open(file, 1, limits, "x.jpg");
      (void)decoder.decode({0, 0, 1, 1}, "x.jpg", 1, &rows);
    } catch (const DataError&) {
    }
  }
}

// Both decoders, reused for all files like in a loader's thread: one image must not affect the next.
class JpegPaths {
 public:
  // The difference in words, empty if there is none. rows: for the tested decoder.
  std::string difference(Bytes file, const JpegAsked& asked, data::JpegRows* rows = nullptr) {
    if (std::vector<std::byte> tables = huffman_segments(file); tables != tables_) {
      tables_ = std::move(tables);
      show_tables(fastest_, file, limits);
    }
    const JpegOutcome truth = jpeg_outcome(library_, file, asked, nullptr, limits);
    data::JpegRows learned;
    const JpegOutcome got =
        jpeg_outcome(fastest_, file, asked, rows == nullptr && compared_ % 2 == 0 ? &learned : rows, limits);
    own_ += learned.empty() ? 0 : 1;
    ++compared_;
    images_ += truth.error.empty() ? 1 : 0;
    const std::string text = jpeg_difference(truth, got);
    if (text.empty()) {
      return text;
    }
    const augment::Region& part = truth.region;
    return text + "\nstrict " + std::to_string(static_cast<int>(asked.strict)) + ", channels " +
           std::to_string(asked.channels) + ", shrink " + std::to_string(asked.shrink) + ", region " +
           std::to_string(part.width) + " x " + std::to_string(part.height) + " at " + std::to_string(part.left) +
           ", " + std::to_string(part.top) + ", rows " + (rows == nullptr ? "null" : std::to_string(rows->size()));
  }
  // Decodes done so far, and how many of them gave an image.
  [[nodiscard]] std::int64_t compared() const { return compared_; }
  [[nodiscard]] std::int64_t images() const { return images_; }
  // How many of every second decode were those of BaselineJpeg, among those without rows of the caller.
  [[nodiscard]] std::int64_t own() const { return own_; }

  data::DecodeLimits limits = {};  // strict is that of JpegAsked

 private:
  data::ImageDecoder library_{data::JpegPath::kLibrary}, fastest_{data::JpegPath::kFastest};
  std::int64_t compared_ = 0, images_ = 0, own_ = 0;
  std::vector<std::byte> tables_;  // of the last file
};

}  // namespace stoker::testing
