// SPDX-License-Identifier: Apache-2.0
// Any bytes give the same pixels or the same words of an error by both decoders of JPEG: whole images and parts, one
// channel and three, strict and lenient, with the rows that a first decode of the file learned, and with AVX-512 and
// AVX2. Arbitrary rows of a file give an image or a DataError. jpeg_mutator.cpp makes the inputs.
#include <array>
#include <memory>
#include <vector>

#include "fuzz_target.h"
#include "support/instruction_sets.h"
#include "support/jpeg_paths.h"

namespace stoker::fuzz {
namespace {

// Small limits, so that no execution takes longer than a small image.
constexpr data::DecodeLimits kLimits = {
    .max_pixels = 64 * 64, .max_side = 256, .max_scans = 12, .max_memory = 1 << 20, .strict = true};

// Both reused like in a loader's thread: one image must not affect the next.
struct Decoders {
  data::ImageDecoder library{data::JpegPath::kLibrary}, fastest{data::JpegPath::kFastest};
};

// Those of one set of instructions that BaselineJpeg is made for; which one depends on the input.
Decoders& decoders_for(std::uint64_t choice) {
  static const std::vector<std::int64_t> all = testing::instruction_sets();
  static std::array<std::unique_ptr<Decoders>, 3> made;  // as many sets contain AVX2
  std::size_t set = choice % made.size();
  while (set > 0 && (all[set] & HWY_AVX2) == 0) {
    --set;
  }
  testing::use_instructions(all[set]);
  if (!made[set]) {
    made[set] = std::make_unique<Decoders>();
  }
  return *made[set];
}

testing::JpegOutcome compare(Decoders& decoders, Bytes file, const testing::JpegAsked& asked, data::JpegRows* rows) {
  testing::JpegOutcome truth = testing::jpeg_outcome(decoders.library, file, asked, nullptr, kLimits);
  const std::string text =
      testing::jpeg_difference(truth, testing::jpeg_outcome(decoders.fastest, file, asked, rows, kLimits));
  if (!text.empty()) {
    std::fprintf(stderr, "%s\nstrict %d, channels %d, region %d x %d at %d, %d\n", text.c_str(),
                 static_cast<int>(asked.strict), asked.channels, truth.region.width, truth.region.height,
                 truth.region.left, truth.region.top);
  }
  expect(text.empty(), "both decoders agree");
  return truth;
}

data::JpegRows arbitrary_rows(std::uint64_t choice, std::size_t bytes) {
  testing::QuickRandom random(choice);
  data::JpegRows rows(static_cast<std::size_t>(random.below(9)));
  for (data::JpegRow& row : rows) {
    row.bit = random.below(4) == 0 ? random() : static_cast<std::uint32_t>(random.below(static_cast<int>(bytes * 8)));
    for (std::int16_t& dc : row.dc) {
      dc = static_cast<std::int16_t>(random());
    }
  }
  return rows;
}

}  // namespace
}  // namespace stoker::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  using namespace stoker::fuzz;
  if (size < 4 || data[0] != 0xFF || data[1] != 0xD8 || data[2] != 0xFF) {
    return 0;  // another format
  }
  const Bytes file = std::as_bytes(std::span(data, size));
  const std::uint64_t choice = hash_of(file);
  Decoders& decoders = decoders_for(choice >> 20);
  testing::show_tables(decoders.fastest, file, kLimits);  // so that an input does not depend on those before it
  testing::JpegAsked asked{.channels = (choice & 1) != 0 ? 1 : 3, .strict = (choice & 2) != 0};
  asked.region = (choice & 4) != 0 ? 0 : 1 + (choice >> 8);
  data::JpegRows rows;
  (void)compare(decoders, file, asked, &rows);
  asked.channels = (choice & 8) != 0 ? 1 : 3;
  asked.strict = !asked.strict;
  asked.region = (choice & 16) != 0 ? 0 : 1 + (choice >> 9);
  (void)compare(decoders, file, asked, (choice & 32) != 0 ? &rows : nullptr);
  if ((choice & 0xC0) == 0) {
    rows = arbitrary_rows(choice, size);
    (void)testing::jpeg_outcome(decoders.fastest, file, asked, &rows, kLimits);
    asked.region = 1 + (choice >> 10);
    (void)compare(decoders, file, asked, nullptr);  // they leave nothing behind
  }
  return 0;
}
