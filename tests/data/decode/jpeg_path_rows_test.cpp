// SPDX-License-Identifier: Apache-2.0
// The rows of a baseline JPEG that a decode learns: with them the pixels stay the same, and fewer bytes are looked at.
// Wrong rows give wrong pixels or an error and nothing worse. Skips on a processor whose JPEGs libjpeg-turbo decodes.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "support/jpeg_kinds.h"
#include "support/jpeg_paths.h"

namespace stoker::data {
namespace {

using testing::JpegContent;
using testing::JpegKind;

using File = std::vector<std::byte>;

constexpr int kWidth = 45, kHeight = 150;

class JpegPathRows : public ::testing::Test {
 protected:
  void SetUp() override {
    if ((hwy::SupportedTargets() & HWY_AVX2) == 0) {
      GTEST_SKIP() << "needs AVX2";
    }
  }

  // Files that BaselineJpeg decodes, and the height of their MCUs.
  template <typename Check>
  void of_each(Check check) {
    for (const JpegKind& common : testing::common_samplings()) {
      for (const bool optimized : {false, true}) {
        JpegKind kind = common;
        kind.optimized = optimized;
        SCOPED_TRACE(kind.name);
        const int unit = kind.factors[0][1] == 2 ? 16 : 8;
        for (const JpegContent content : {JpegContent::kScene, JpegContent::kNoise, JpegContent::kSaturated}) {
          const File file = testing::written_jpeg(kind, kWidth, kHeight, 75, content, 9);
          testing::show_tables(decoder_, file, {});
          ASSERT_NO_FATAL_FAILURE(check(file, unit));
        }
      }
    }
  }

  // Decodes rows top ... bottom - 1 of the image.
  void decode(const File& file, int top, int bottom, JpegRows& rows, int channels = 3) {
    decoder_.open(file, channels, {}, "x.jpg");
    (void)decoder_.decode({3, top, kWidth - 5, bottom - top}, "x.jpg", 1, &rows);
  }

  ImageDecoder decoder_;
  testing::JpegPaths paths_;
};

TEST_F(JpegPathRows, AWholeImageTeachesAll) {
  of_each([&](const File& file, int unit) {
    JpegRows rows, luma;
    ASSERT_EQ(paths_.difference(file, {}, &rows), "");
    ASSERT_EQ(rows.size(), static_cast<std::size_t>((kHeight + unit - 1) / unit));
    EXPECT_EQ(rows[0], JpegRow{});
    for (std::size_t i = 1; i < rows.size(); ++i) {
      EXPECT_GT(rows[i].bit, rows[i - 1].bit);
      EXPECT_LT(rows[i].bit, file.size() * 8);
    }
    ASSERT_EQ(paths_.difference(file, {.channels = 1}, &luma), "");
    EXPECT_EQ(luma, rows);
  });
}

// Parts are decoded in any order; what they teach is the beginning of what the whole image teaches.
TEST_F(JpegPathRows, PartsTeachTheSame) {
  of_each([&](const File& file, int unit) {
    JpegRows all;
    decode(file, 0, kHeight, all);
    for (int top = 0; top < kHeight; top += 13) {
      for (const int bottom : {top + 1, std::min(top + 30, kHeight), kHeight}) {
        JpegRows rows;
        decode(file, top, bottom, rows, 1 + top % 2 * 2);
        ASSERT_GT(rows.size(), static_cast<std::size_t>((bottom - 1) / unit)) << top << ", " << bottom;
        ASSERT_LE(rows.size(), all.size());
        ASSERT_TRUE(std::equal(rows.begin(), rows.end(), all.begin())) << top << ", " << bottom;
        decode(file, 5, kHeight, rows);  // known ones stay, others are added
        ASSERT_EQ(rows, all) << top << ", " << bottom;
      }
    }
  });
}

TEST_F(JpegPathRows, KnownRowsChangeNoPixel) {
  of_each([&](const File& file, int) {
    JpegRows all;
    decode(file, 0, kHeight, all);
    for (std::size_t known = 0; known <= all.size(); ++known) {
      for (std::uint64_t region = 1; region < 40; ++region) {
        JpegRows rows(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(known));
        const testing::JpegAsked asked{.channels = region % 3 == 0 ? 1 : 3, .region = region * 31 + known};
        ASSERT_EQ(paths_.difference(file, asked, &rows), "") << known << " rows are known";
        ASSERT_GE(rows.size(), known);
        ASSERT_TRUE(std::equal(rows.begin(), rows.end(), all.begin()));
      }
    }
  });
}

// Damage above a known row is not seen, since its bytes are not looked at: so rows are worth something.
TEST_F(JpegPathRows, WhatLiesAboveAKnownRowIsNotRead) {
  const augment::Region low{0, kHeight - 9, kWidth, 9};
  const auto pixels = [&](const File& file, JpegRows* rows) {
    decoder_.open(file, 3, {.strict = false}, "x.jpg");
    const augment::ImageView view = decoder_.decode(low, "x.jpg", 1, rows);
    return std::vector<std::uint8_t>(view.row(low.top), view.row(low.top) + kWidth * 3);
  };
  for (const JpegKind& kind : testing::common_samplings()) {
    const File file = testing::written_jpeg(kind, kWidth, kHeight, 75, JpegContent::kScene, 9);
    JpegRows rows;
    testing::show_tables(decoder_, file, {});
    const std::vector<std::uint8_t> expected = pixels(file, &rows);
    ASSERT_FALSE(rows.empty()) << kind.name;
    File damaged = file;
    const std::size_t scan = file.size() - rows.back().bit / 8;  // or a bit later: the last row is not counted
    std::fill_n(damaged.begin() + static_cast<std::ptrdiff_t>(scan + 40), 3, std::byte{0x5A});
    EXPECT_NE(pixels(damaged, nullptr), expected) << kind.name << ": the damage has no effect";
    EXPECT_EQ(pixels(damaged, &rows), expected) << kind.name;
  }
}

TEST_F(JpegPathRows, OtherImagesAndTheLibraryLeaveThemAsTheyAre) {
  JpegKind progressive = testing::common_samplings()[1];
  progressive.progressive = true;
  const JpegRows before = {{}, {.bit = 77, .dc = {1, 2, 3}}};
  JpegRows rows = before;
  const File other = testing::written_jpeg(progressive, kWidth, kHeight, 75, JpegContent::kScene, 9);
  EXPECT_EQ(paths_.difference(other, {}, &rows), "");
  EXPECT_EQ(rows, before);
  const File plain = testing::written_jpeg(testing::common_samplings()[1], kWidth, kHeight, 75, JpegContent::kScene, 9);
  EXPECT_EQ(paths_.difference(plain, {.shrink = 2}, &rows), "");
  EXPECT_EQ(rows, before);
  ImageDecoder library(JpegPath::kLibrary);
  EXPECT_EQ(testing::jpeg_outcome(library, plain, {}, &rows).error, "");
  EXPECT_EQ(rows, before);
}

// Values that no file has, and those of another file. The next image is right again.
TEST_F(JpegPathRows, WrongRowsDoNoHarm) {
  testing::QuickRandom random(6);
  of_each([&](const File& file, int) {
    for (int i = 0; i < 200; ++i) {
      JpegRows rows(static_cast<std::size_t>(random.below(30)));
      for (JpegRow& row : rows) {
        row.bit = i % 2 == 0 ? random() : static_cast<std::uint32_t>(random.below(static_cast<int>(file.size()) * 8));
        for (std::int16_t& dc : row.dc) {
          dc = static_cast<std::int16_t>(random());
        }
      }
      const auto region = static_cast<std::uint64_t>(1 + i);
      const testing::JpegOutcome got =
          testing::jpeg_outcome(decoder_, file, {.strict = i % 3 != 0, .region = region}, &rows);
      EXPECT_TRUE(got.error.empty() || got.error.starts_with("[data.jpeg] x.jpg: ")) << got.error;
      if (got.error.empty()) {
        EXPECT_EQ(got.height, kHeight);
      }
    }
    ASSERT_EQ(paths_.difference(file, {.region = 5}), "");
  });
}

}  // namespace
}  // namespace stoker::data
