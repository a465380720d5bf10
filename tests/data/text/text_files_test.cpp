// SPDX-License-Identifier: Apache-2.0
// Which files count as text, how they are read, and where a text may be cut.
#include "stoker/data/text/text_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "support/temp_folder.h"

namespace stoker::data {
namespace {

using stoker::testing::TempFolder;
using ::testing::HasSubstr;

TEST(TextFiles, AFolderIsItsTextFilesInBytewiseOrder) {
  const TempFolder folder;
  folder.write("b.txt", "two\n");
  folder.write("a/z.txt", "one");  // without a newline at the end
  folder.write("c.txt", "three");
  folder.write(".hidden/x.bin", "no");
  folder.write(".notes.md", "no");
  EXPECT_TRUE(looks_like_text(folder.path()));
  const Text text = read_text_files(folder.path());
  EXPECT_EQ(text.bytes, "one\ntwo\nthree");
  EXPECT_EQ(text.files.front(), folder / "a/z.txt");
  folder.write("d.png", "?");
  EXPECT_FALSE(looks_like_text(folder.path()));  // a folder of images with a read-me is not text
  EXPECT_EQ(read_text_files(folder.path()).bytes, text.bytes);
}

TEST(TextFiles, LinksInCirclesAndToNowhereAreNoTrouble) {
  const TempFolder folder;
  folder.write("a.txt", "text");
  std::filesystem::create_directory_symlink(folder.path(), folder / "again");
  std::filesystem::create_symlink("circle.txt", folder / "circle.txt");
  EXPECT_TRUE(looks_like_text(folder.path()));
  EXPECT_THROW((void)read_text_files(folder.path()), DataError);  // circle.txt ends in .txt, but is unreadable
  std::filesystem::remove(folder / "circle.txt");
  EXPECT_EQ(read_text_files(folder.path()).bytes, "text");
}

TEST(TextFiles, OneFileIsItself) {
  const TempFolder folder;
  folder.write("poem.txt", "roses");
  EXPECT_TRUE(looks_like_text(folder / "poem.txt"));
  EXPECT_FALSE(looks_like_text(folder / "poem.md"));
  EXPECT_EQ(read_text_files(folder / "poem.txt").bytes, "roses");
}

TEST(TextFiles, NothingToReadIsSaid) {
  const TempFolder folder;
  folder.write("empty.txt", "");
  std::filesystem::create_directory(folder / "none");
  const auto refusal = [](const std::filesystem::path& path) -> std::string {
    try {
      (void)read_text_files(path);
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal(folder / "empty.txt"), HasSubstr("is empty"));
  EXPECT_THAT(refusal(folder / "none"), HasSubstr("contains no .txt file"));
  EXPECT_THAT(refusal(folder / "missing.txt"), HasSubstr("missing.txt"));
  EXPECT_FALSE(looks_like_text(folder / "none"));
}

TEST(TextFiles, ACutLeavesCharactersWhole) {
  const std::string text = "a\u00e9\u20ac\U0001F600b";  // 1, 2, 3, 4 and 1 bytes
  const std::vector<std::size_t> expected = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
  for (std::size_t wanted = 0; wanted < expected.size(); ++wanted) {
    EXPECT_EQ(whole_characters(text, wanted), expected[wanted]) << wanted;
  }
  EXPECT_EQ(whole_characters("\u00e9", 1), 0U);
  EXPECT_EQ(whole_characters("\x80\x80\x80\x80\x80\x80", 5), 5U);  // not UTF-8: cut exactly there
}

}  // namespace
}  // namespace stoker::data
