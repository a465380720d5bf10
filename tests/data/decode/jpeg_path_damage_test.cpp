// SPDX-License-Identifier: Apache-2.0
// The decoder of baseline JPEGs equals libjpeg-turbo on damaged files: the same pixels, or the same words of an error.
// Every byte is changed, every length is cut, markers are inserted and bytes are removed.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "support/jpeg_kinds.h"
#include "support/jpeg_paths.h"

namespace stoker::data {
namespace {

using testing::JpegContent;
using testing::JpegKind;

using File = std::vector<std::byte>;

// The common samplings, and grey images whose blocks libjpeg-turbo decodes two rows at a time.
std::vector<JpegKind> sampled() {
  std::vector<JpegKind> kinds = testing::common_samplings();
  for (const auto factors : {std::array<int, 2>{2, 2}, {1, 2}, {2, 1}}) {
    kinds.push_back({.name = "grey", .colours = JCS_GRAYSCALE, .factors = {factors}});
  }
  return kinds;
}

// Small files of every sampling, with restart markers and without, and of each kind of other coding.
std::vector<JpegKind> damaged_kinds() {
  std::vector<JpegKind> kinds = sampled();
  for (const JpegKind& kind : testing::common_samplings()) {
    kinds.push_back(kind);
    kinds.back().restart = 2;
    kinds.push_back(kind);
    kinds.back().optimized = true;
  }
  for (const JpegKind& coding : testing::codings_of(testing::common_samplings()[2])) {
    kinds.push_back(coding);
  }
  return kinds;
}

class JpegDamage : public ::testing::Test {
 protected:
  // Calls damage(file) with a file of each kind.
  template <typename Damage>
  void of_each_kind(Damage damage) {
    for (const JpegKind& kind : damaged_kinds()) {
      SCOPED_TRACE(kind.name);
      const auto content = kind.optimized ? JpegContent::kCoefficients : JpegContent::kScene;
      ASSERT_NO_FATAL_FAILURE(damage(testing::written_jpeg(kind, 27, 34, kind.optimized ? 50 : 70, content, 4)));
    }
    EXPECT_GT(paths_.images(), paths_.compared() / 20);
    EXPECT_LT(paths_.images(), paths_.compared());
  }
  // Compares the file in one way of eight, the next in the next way, so that all are used at all places.
  void compare(const File& file) {
    ++turn_;
    const testing::JpegAsked asked{.channels = turn_ % 3 == 0 ? 1 : 3,
                                   .strict = turn_ % 2 == 0,
                                   .region = turn_ % 5 < 3 ? 0 : 1 + static_cast<std::uint64_t>(turn_)};
    JpegRows rows;
    ASSERT_EQ(paths_.difference(file, asked, turn_ % 4 == 0 ? &rows : nullptr), "");
    if (turn_ % 4 == 0) {  // with rows of a damaged file
      ASSERT_EQ(
          paths_.difference(file, {.strict = asked.strict, .region = 1 + static_cast<std::uint64_t>(turn_)}, &rows),
          "");
    }
  }

  testing::JpegPaths paths_;
  int turn_ = 0;
};

// Where the entropy-coded bytes of the first scan begin.
std::size_t scan_of(const File& file) {
  std::size_t at = 2;
  while (true) {
    const auto size =
        2 + (std::to_integer<std::size_t>(file[at + 2]) << 8) + std::to_integer<std::size_t>(file[at + 3]);
    if (file[at + 1] == std::byte{0xDA}) {
      return at + size;
    }
    at += size;
  }
}

TEST_F(JpegDamage, EveryByteIsChanged) {
  of_each_kind([&](const File& whole) {
    File file = whole;
    for (std::size_t at = 2; at < whole.size(); ++at) {
      const int bit = static_cast<int>(at % 8);
      for (const std::byte value : {whole[at] ^ std::byte(1 << bit), whole[at] ^ std::byte(0x80 >> (bit + 5) % 8),
                                    std::byte{0}, std::byte{0xFF}, std::byte(at * 37)}) {
        file[at] = value;
        ASSERT_NO_FATAL_FAILURE(compare(file)) << "byte " << at << " is " << std::to_integer<int>(value);
      }
      file[at] = whole[at];
    }
  });
}

// In the scan every bit is flipped, and each such file is decoded whole, in part, strict and lenient.
TEST_F(JpegDamage, EveryBitOfAScanIsFlipped) {
  for (const JpegKind& kind : sampled()) {
    const File whole = testing::written_jpeg(kind, 19, 21, 60, JpegContent::kScene, 8);
    File file = whole;
    for (std::size_t bit = scan_of(whole) * 8; bit < whole.size() * 8; ++bit) {
      file[bit / 8] = whole[bit / 8] ^ std::byte(0x80 >> bit % 8);
      for (int way = 0; way < 8; ++way) {
        const testing::JpegAsked asked{.channels = way < 6 ? 3 : 1,
                                       .strict = way % 2 == 0,
                                       .region = way < 2 ? 0 : bit * 8 + static_cast<std::size_t>(way)};
        ASSERT_EQ(paths_.difference(file, asked), "") << kind.name << ", bit " << bit % 8 << " of byte " << bit / 8;
      }
      file[bit / 8] = whole[bit / 8];
    }
  }
}

// The library has a limit for sides, and we have one for sides and pixels.
TEST_F(JpegDamage, SidesAreLargerThanThePicture) {
  const File whole = testing::written_jpeg(testing::common_samplings()[1], 27, 34, 70, JpegContent::kScene, 4);
  constexpr std::byte kFrame[] = {std::byte{0xFF}, std::byte{0xC0}};
  const auto frame = std::search(whole.begin(), whole.end(), std::begin(kFrame), std::end(kFrame)) - whole.begin();
  for (const int side : {0, 1, 26, 28, 35, 300, 9999, 32767, 32768, 65499, 65500, 65501, 65535}) {
    for (const auto place : {frame + 5, frame + 7}) {  // height, width
      File file = whole;
      file[static_cast<std::size_t>(place)] = std::byte(side >> 8);
      file[static_cast<std::size_t>(place) + 1] = std::byte(side & 255);
      for (const std::int64_t pixels : {std::int64_t{1000}, std::int64_t{100'000'000}}) {
        paths_.limits.max_pixels = pixels;
        for (int i = 0; i < 4; ++i) {
          ASSERT_NO_FATAL_FAILURE(compare(file)) << side;
        }
      }
    }
  }
}

TEST_F(JpegDamage, EveryLengthIsCut) {
  of_each_kind([&](const File& whole) {
    for (std::size_t size = 2; size < whole.size(); ++size) {
      const File file(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      for (int i = 0; i < 2; ++i) {
        ASSERT_NO_FATAL_FAILURE(compare(file)) << "the first " << size << " bytes of " << whole.size();
      }
    }
  });
}

TEST_F(JpegDamage, MarkersAndBytesAreInserted) {
  const std::vector<std::vector<std::uint8_t>> pieces = {
      {0xFF, 0xD9}, {0xFF, 0xD0}, {0xFF, 0xD1}, {0xFF, 0xD7}, {0xFF, 0xFF},       {0xFF, 0x01}, {0xFF, 0x00},
      {0xFF},       {0x00},       {0xFF, 0xD8}, {0xFF, 0xDA}, {0xFF, 0xFE, 0, 2}, {0x55, 0xAA}, {0xFF, 0xFF, 0xD9}};
  of_each_kind([&](const File& whole) {
    for (std::size_t at = 2; at <= whole.size(); ++at) {
      for (std::size_t i = at % 2; i < pieces.size(); i += 2) {
        File file = whole;
        const auto bytes = std::as_bytes(std::span(pieces[i]));
        file.insert(file.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin(), bytes.end());
        ASSERT_NO_FATAL_FAILURE(compare(file)) << "piece " << i << " before byte " << at;
      }
    }
  });
}

// Where the data that a part needs ends at the place of damage, or a few bits before or behind it. Several FF and a 0
// are one FF of the data: what follows counts, too, and so does that the file ends.
TEST_F(JpegDamage, TheScanEndsOrBreaksAtAPart) {
  const std::vector<std::vector<std::uint8_t>> pieces = {{}, {0xFF, 0xD0}, {0xFF, 0xFF, 0xFF, 0}};
  const std::vector<std::uint64_t> regions = testing::choices_above(32, 20, 44, 8);
  for (JpegKind kind : sampled()) {
    kind.optimized = true;  // the codes for the end of a block, which end a row, then end with ones, too
    const File whole = testing::written_jpeg(kind, 20, 44, 70, JpegContent::kScene, 4);
    for (std::size_t at = scan_of(whole); at < whole.size(); ++at) {
      for (std::size_t i = 0; i < 2 * pieces.size(); ++i) {
        const auto place = whole.begin() + static_cast<std::ptrdiff_t>(at);
        const auto piece = std::as_bytes(std::span(pieces[i / 2]));
        File file(whole.begin(), place);
        file.insert(file.end(), piece.begin(), piece.end());
        file.insert(file.end(), place, i % 2 == 0 ? place : whole.end());
        for (const std::uint64_t region : regions) {
          ASSERT_EQ(paths_.difference(file, {.region = region}), "") << kind.name << ", piece " << i << " at " << at;
        }
      }
    }
  }
}

TEST_F(JpegDamage, BytesAreRemoved) {
  of_each_kind([&](const File& whole) {
    for (std::size_t at = 2; at < whole.size(); ++at) {
      for (const std::size_t count : {1, 2, 5}) {
        File file = whole;
        const auto first = file.begin() + static_cast<std::ptrdiff_t>(at);
        file.erase(first, first + static_cast<std::ptrdiff_t>(std::min(count, whole.size() - at)));
        ASSERT_NO_FATAL_FAILURE(compare(file)) << count << " bytes from " << at;
      }
    }
  });
}

// Bytes that are left over after the image, and pieces of a scan that come twice.
TEST_F(JpegDamage, APartOfTheScanComesTwice) {
  of_each_kind([&](const File& whole) {
    const std::size_t scan = scan_of(whole);
    testing::QuickRandom random(3);
    for (int i = 0; i < 400; ++i) {
      const auto place = [&] {
        return scan + static_cast<std::size_t>(random.below(static_cast<int>(whole.size() - scan)));
      };
      const std::size_t from = place(), to = place();
      const std::size_t size = 1 + static_cast<std::size_t>(random.below(static_cast<int>(whole.size() - from)));
      File file = whole;
      file.insert(file.begin() + static_cast<std::ptrdiff_t>(to), whole.begin() + static_cast<std::ptrdiff_t>(from),
                  whole.begin() + static_cast<std::ptrdiff_t>(from + size));
      ASSERT_NO_FATAL_FAILURE(compare(file)) << size << " bytes from " << from << " again before " << to;
    }
  });
}

}  // namespace
}  // namespace stoker::data
