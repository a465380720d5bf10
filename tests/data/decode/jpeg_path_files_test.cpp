// SPDX-License-Identifier: Apache-2.0
// The decoder of baseline JPEGs equals libjpeg-turbo on files that people have: random parts of photographs, with rows
// that are unknown, learned and known; and every damaged, hostile or unusual file.
#include <gtest/gtest.h>

#include "support/images.h"
#include "support/jpeg_paths.h"
#include "support/shared_data.h"

namespace stoker::data {
namespace {

namespace fs = std::filesystem;

// 20 parts of each of 250 photographs.
TEST(JpegPathFiles, EqualsTheLibraryOnFiveThousandPartsOfPhotographs) {
  const fs::path folder = testing::shared_data("imagenet-sample");
  if (folder.empty()) {
    GTEST_SKIP() << "needs imagenet-sample/ in STOKER_DATA";
  }
  testing::JpegPaths paths;
  testing::QuickRandom random(5);
  std::vector<std::byte> file;
  int parts = 0, photographs = 0;
  for (const fs::path& path : testing::files_below(folder)) {
    read_file(path, file);
    ++photographs;
    JpegRows rows;
    for (int i = 0; i < 20; ++i, ++parts) {
      const testing::JpegAsked asked{.channels = i % 7 == 3 ? 1 : 3, .strict = i % 5 != 0, .region = 1U + random()};
      if (i % 10 == 4) {
        rows.clear();  // learned again, from another part
      }
      ASSERT_EQ(paths.difference(file, asked, i % 3 == 0 ? nullptr : &rows), "") << path << ", part " << i;
    }
  }
  EXPECT_GE(photographs, 250);
  EXPECT_GE(parts, 5000);
  EXPECT_EQ(paths.images(), paths.compared());
}

TEST(JpegPathFiles, EqualsTheLibraryOnWholePhotographs) {
  const fs::path folder = testing::shared_data("imagenet-sample");
  if (folder.empty()) {
    GTEST_SKIP() << "needs imagenet-sample/ in STOKER_DATA";
  }
  testing::JpegPaths paths;
  std::vector<std::byte> file;
  for (const fs::path& path : testing::files_below(folder)) {
    read_file(path, file);
    JpegRows rows;
    ASSERT_EQ(paths.difference(file, {.channels = paths.compared() % 8 == 0 ? 1 : 3}, &rows), "") << path;
    ASSERT_EQ(paths.difference(file, {.region = 77}, &rows), "") << path;  // all rows are known
  }
  EXPECT_EQ(paths.images(), paths.compared());
}

// Decodes every file of folder, whole and in parts, and returns the number of files.
int compare_all(const fs::path& folder) {
  testing::JpegPaths paths;
  std::vector<std::byte> file;
  int files = 0;
  for (const fs::path& path : testing::files_below(folder)) {
    read_file(path, file);
    ++files;
    JpegRows rows;
    for (std::uint64_t i = 0; i < 24; ++i) {
      // The whole image first, so that the rows are those that a damaged file gave.
      const testing::JpegAsked asked{
          .channels = i % 2 == 0 ? 3 : 1, .strict = i % 4 < 2, .region = i < 4 ? 0 : i * 1000 + file.size()};
      EXPECT_EQ(paths.difference(file, asked, i % 3 == 0 ? nullptr : &rows), "") << path;
    }
  }
  EXPECT_GT(paths.images(), paths.compared() / 4);
  EXPECT_LT(paths.images(), paths.compared());
  return files;
}

TEST(JpegPathFiles, EqualsTheLibraryOnCommittedBrokenImages) {
  EXPECT_GE(compare_all(testing::source_folder() / "tests/data/broken-images"), 39);
}

TEST(JpegPathFiles, EqualsTheLibraryOnAllBrokenImages) {
  const fs::path folder = testing::shared_data("broken-images");
  if (folder.empty()) {
    GTEST_SKIP() << "needs broken-images/ in STOKER_DATA";
  }
  EXPECT_GE(compare_all(folder), 225);
}

}  // namespace
}  // namespace stoker::data
