// SPDX-License-Identifier: Apache-2.0
// The decoder of baseline JPEGs equals libjpeg-turbo, to the bit and to the word of an error: every sampling, size 1 to
// 40, quality, content and way to code an image; whole images and parts, one channel and three.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "support/jpeg_kinds.h"
#include "support/jpeg_paths.h"

namespace stoker::data {
namespace {

using testing::JpegContent;
using testing::JpegKind;

constexpr int kLargest = 40;

// Files of rotating quality and content. What is drawn depends on the number of the file alone.
class JpegPath : public ::testing::Test {
 protected:
  // Writes one file and compares the whole image, with one channel and with three, and `parts` parts of it.
  void compare(const JpegKind& kind, int width, int height, int parts) {
    testing::QuickRandom random(++files_);
    const int quality = files_ % 5 == 0 ? 100 - static_cast<int>(files_ / 5 % 6) : 1 + random.below(100);
    const auto content = static_cast<JpegContent>(random.below(testing::kJpegContents));
    const std::vector<std::byte> file = testing::written_jpeg(kind, width, height, quality, content, files_);
    for (int i = 0; i < 2 + parts; ++i) {
      const testing::JpegAsked asked{.channels = i % 2 == 0 ? 3 : 1,
                                     .strict = random.below(4) != 0,
                                     .region = i < 2 ? 0 : 1 + static_cast<std::uint64_t>(random())};
      const std::string text = paths_.difference(file, asked);
      ASSERT_EQ(text, "") << kind.name << ", " << width << " x " << height << ", quality " << quality << ", content "
                          << static_cast<int>(content) << ", seed " << files_;
    }
  }
  // Some sizes of a kind: every width and every height, but not every pair.
  void compare_some_sizes(const JpegKind& kind, int pairs) {
    for (int width = 1; width <= kLargest; ++width) {
      for (int i = 0; i < pairs; ++i) {
        const int height = 1 + (width * 7 + i * 11 + static_cast<int>(files_ / 40)) % kLargest;
        ASSERT_NO_FATAL_FAILURE(compare(kind, width, height, 2));
      }
    }
  }

  testing::JpegPaths paths_;
  std::uint64_t files_ = 0;
};

TEST_F(JpegPath, EqualsTheLibraryForEverySizeOfTheCommonSamplings) {
  for (const JpegKind& kind : testing::common_samplings()) {
    for (int width = 1; width <= kLargest; ++width) {
      for (int height = 1; height <= kLargest; ++height) {
        ASSERT_NO_FATAL_FAILURE(compare(kind, width, height, 2));
      }
    }
  }
  EXPECT_EQ(paths_.images(), 5 * kLargest * kLargest * 4);
  if ((hwy::SupportedTargets() & HWY_AVX2) != 0) {  // else libjpeg-turbo was compared with itself
    EXPECT_GT(paths_.own(), paths_.compared() / 3) << "of " << paths_.compared();
  }
}

TEST_F(JpegPath, EqualsTheLibraryForEveryQuality) {
  for (const JpegKind& kind : testing::common_samplings()) {
    for (int quality = 1; quality <= 100; ++quality) {
      for (int content = 0; content < testing::kJpegContents; ++content) {
        const auto seed = static_cast<std::uint64_t>(quality * 10 + content);
        const std::vector<std::byte> file =
            testing::written_jpeg(kind, 35, 21, quality, static_cast<JpegContent>(content), seed);
        ASSERT_EQ(paths_.difference(file, {}), "") << kind.name << ", quality " << quality << ", content " << content;
      }
    }
  }
  EXPECT_EQ(paths_.images(), 5 * 100 * testing::kJpegContents);
}

TEST_F(JpegPath, EqualsTheLibraryForRareSamplings) {
  for (const JpegKind& kind : testing::rare_samplings()) {
    ASSERT_NO_FATAL_FAILURE(compare_some_sizes(kind, 2));
  }
  EXPECT_GE(paths_.images(), paths_.compared() * 9 / 10);  // two components are an error
}

TEST_F(JpegPath, EqualsTheLibraryForColourSpacesThatAreGuessed) {
  for (const JpegKind& kind : testing::colour_spaces()) {
    ASSERT_NO_FATAL_FAILURE(compare_some_sizes(kind, 1));
  }
  EXPECT_GE(paths_.images(), paths_.compared() * 9 / 10);
}

TEST_F(JpegPath, EqualsTheLibraryForEveryCoding) {
  for (const JpegKind& kind : testing::common_samplings()) {
    for (const JpegKind& coding : testing::codings_of(kind)) {
      ASSERT_NO_FATAL_FAILURE(compare_some_sizes(coding, 1));
    }
  }
  EXPECT_EQ(paths_.images(), paths_.compared());
}

// Several bands of rows and columns, and sizes around the limits of vectors.
TEST_F(JpegPath, EqualsTheLibraryForLargerImages) {
  for (const JpegKind& kind : testing::common_samplings()) {
    for (const int width : {63, 64, 65, 127, 129, 255, 257, 511, 513, 1030}) {
      ASSERT_NO_FATAL_FAILURE(compare(kind, width, 40 + width % 100, 6));
      ASSERT_NO_FATAL_FAILURE(compare(kind, 20 + width % 50, width, 6));
    }
  }
  EXPECT_EQ(paths_.images(), paths_.compared());
}

// Images at a fraction of their size are the library's.
TEST_F(JpegPath, EqualsTheLibraryForShrunkImages) {
  for (const JpegKind& kind : testing::common_samplings()) {
    for (int side = 1; side <= kLargest; ++side) {
      const std::vector<std::byte> file =
          testing::written_jpeg(kind, side, 1 + (side * 7) % kLargest, 80, JpegContent::kScene, 3);
      for (const int shrink : {2, 4, 8}) {
        for (const std::uint64_t region : {0, side, side + 100}) {
          ASSERT_EQ(paths_.difference(file, {.shrink = shrink, .region = region}), "") << kind.name << ", " << side;
        }
      }
    }
  }
}

// Files from cameras that send moving pictures have no Huffman tables; the standard's are then used.
TEST_F(JpegPath, EqualsTheLibraryForFilesWithoutTables) {
  for (const JpegKind& kind : testing::common_samplings()) {
    const std::vector<std::byte> whole = testing::written_jpeg(kind, 37, 29, 80, JpegContent::kScene, 5);
    std::vector<std::byte> file = whole;
    for (std::size_t at = 2; at + 4 < file.size() && file[at + 1] != std::byte{0xDA};) {
      const std::size_t size =
          2 + (std::to_integer<std::size_t>(file[at + 2]) << 8) + std::to_integer<std::size_t>(file[at + 3]);
      if (file[at + 1] == std::byte{0xC4}) {
        file.erase(file.begin() + static_cast<std::ptrdiff_t>(at),
                   file.begin() + static_cast<std::ptrdiff_t>(at + size));
      } else {
        at += size;
      }
    }
    EXPECT_LT(file.size() + 40, whole.size());
    EXPECT_EQ(paths_.difference(file, {}), "") << kind.name;
    EXPECT_EQ(paths_.difference(file, {.channels = 1, .region = 9}), "") << kind.name;
  }
  EXPECT_EQ(paths_.images(), paths_.compared());
}

}  // namespace
}  // namespace stoker::data
