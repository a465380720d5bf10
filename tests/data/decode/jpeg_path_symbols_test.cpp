// SPDX-License-Identifier: Apache-2.0
// The decoder of baseline JPEGs equals libjpeg-turbo on files with random Huffman tables and random symbols: what the
// format allows but no encoder writes, and what libjpeg-turbo accepts beyond it.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "support/jpeg_paths.h"
#include "support/jpeg_symbols.h"

namespace stoker::data {
namespace {

class JpegPathSymbols : public ::testing::Test {
 protected:
  void compare_files(bool wild, int files) {
    const std::vector<std::vector<std::array<int, 2>>> samplings = {{{1, 1}},
                                                                    {{1, 1}, {1, 1}, {1, 1}},
                                                                    {{2, 2}, {1, 1}, {1, 1}},
                                                                    {{2, 1}, {1, 1}, {1, 1}},
                                                                    {{1, 2}, {1, 1}, {1, 1}}};
    testing::QuickRandom random(wild ? 1 : 2);
    for (int i = 0; i < files; ++i) {
      testing::SymbolJpeg kind{.width = 1 + random.below(70), .height = 1 + random.below(50), .wild = wild};
      kind.factors = samplings[static_cast<std::size_t>(i) % samplings.size()];
      kind.restart = std::max(0, random.below(12) - 8);
      const std::vector<std::byte> file = testing::symbol_jpeg(kind, static_cast<std::uint64_t>(i));
      JpegRows rows;
      for (int way = 0; way < 4; ++way) {
        const testing::JpegAsked asked{.channels = way == 2 ? 1 : 3,
                                       .strict = random.below(3) != 0,
                                       .region = way == 0 ? 0 : 1 + static_cast<std::uint64_t>(random())};
        ASSERT_EQ(paths_.difference(file, asked, i % 2 == 0 ? &rows : nullptr), "")
            << "file " << i << ", " << kind.factors.size() << " components of " << kind.factors[0][0] << " x "
            << kind.factors[0][1] << ", " << kind.width << " x " << kind.height << ", restart " << kind.restart;
      }
    }
  }

  testing::JpegPaths paths_;
};

TEST_F(JpegPathSymbols, EqualsTheLibraryForWhatTheFormatAllows) {
  compare_files(false, 2500);
  EXPECT_EQ(paths_.images(), paths_.compared());
  if ((hwy::SupportedTargets() & HWY_AVX2) != 0) {  // else libjpeg-turbo was compared with itself
    EXPECT_GT(paths_.own(), paths_.compared() / 10) << "of " << paths_.compared();
  }
}

TEST_F(JpegPathSymbols, EqualsTheLibraryForWhatItAcceptsBeyond) {
  compare_files(true, 2500);
  EXPECT_GT(paths_.images(), paths_.compared() * 9 / 10);
}

// The last bits of a row are ones in many of these files, as are the bits that a decoder may take for those behind the
// end.
TEST_F(JpegPathSymbols, EqualsTheLibraryWhereTheScanIsCut) {
  const std::vector<std::uint64_t> regions = testing::choices_above(16, 8, 24, 6);
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    testing::SymbolJpeg kind{.width = 8, .height = 24};
    kind.factors.resize(seed % 2 == 0 ? 1 : 3);
    const std::vector<std::byte> whole = testing::symbol_jpeg(kind, seed);
    for (std::size_t size = whole.size() / 3; size < whole.size(); ++size) {
      const std::vector<std::byte> file(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      for (const std::uint64_t region : regions) {
        ASSERT_EQ(paths_.difference(file, {.region = region}), "") << "seed " << seed << ", " << size << " bytes";
      }
    }
  }
}

}  // namespace
}  // namespace stoker::data
