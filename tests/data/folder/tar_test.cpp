// SPDX-License-Identifier: Apache-2.0
// Tar files written by tar, GNU tar and Python are read. Damaged and hostile files are refused; the error says where.
#include "stoker/data/folder/tar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "support/tar_builder.h"
#include "support/temp_folder.h"

namespace stoker::data {
namespace {

using ::testing::HasSubstr;
using testing::TarBuilder;
using testing::TempFolder;

std::string error_of(std::string_view bytes) {
  const TempFolder folder;
  folder.write("x.tar", bytes);
  try {
    const TarFile tar(folder / "x.tar");
  } catch (const DataError& error) {
    return error.what();
  }
  return "read";
}

TEST(Tar, ReadsMembersOfEveryKindOfName) {
  const std::string long_path = "cat/" + std::string(150, 'a') + ".png";
  const TempFolder folder;
  folder.write("x.tar", TarBuilder()
                            .add("cat/", "", '5')
                            .add("./cat/1.png", "one")
                            .long_name(long_path)
                            .add("cut", "two")
                            .pax("path", "dog/\xC3\xA4 b.png")
                            .add("short", "three")
                            .pax("size", "4")
                            .add("dog/4.png", "four", '0', 0)
                            .add("link", "", '2')
                            .done());
  const TarFile tar(folder / "x.tar");
  ASSERT_EQ(tar.members().size(), 4u);
  EXPECT_EQ(tar.passed_over(), 1);
  std::vector<std::byte> bytes;
  std::vector<std::pair<std::string, std::string>> found;
  for (const TarMember& member : tar.members()) {
    tar.read(member.offset, member.size, bytes);
    found.emplace_back(member.path, as_text(bytes));
  }
  EXPECT_EQ(found,
            (std::vector<std::pair<std::string, std::string>>{
                {"cat/1.png", "one"}, {long_path, "two"}, {"dog/\xC3\xA4 b.png", "three"}, {"dog/4.png", "four"}}));
}

TEST(Tar, TheUstarPrefixIsPartOfThePath) {
  std::string bytes = TarBuilder().add("1.png", "x").done();
  std::memcpy(bytes.data() + 345, "train/cat", 9);
  bytes.replace(148, 8, "        ");
  unsigned sum = 0;
  for (int i = 0; i < 512; ++i) {
    sum += static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
  }
  std::snprintf(bytes.data() + 148, 8, "%06o", sum);
  const TempFolder folder;
  folder.write("x.tar", bytes);
  EXPECT_EQ(TarFile(folder / "x.tar").members().at(0).path, "train/cat/1.png");
}

TEST(Tar, RefusesWhatIsDamagedOrHostile) {
  const std::string good = TarBuilder().add("cat/1.png", "hello").add("cat/2.png", "world").done();
  EXPECT_EQ(error_of(good), "read");
  EXPECT_EQ(error_of(""), "read");  // a tar without members
  std::string flipped = good;
  flipped[1024 + 3] ^= 1;
  EXPECT_THAT(error_of(flipped), HasSubstr("wrong header checksum at byte 1024"));
  EXPECT_THAT(error_of(good.substr(0, 1300)), HasSubstr("ends in the middle of a header at byte 1024"));
  EXPECT_THAT(error_of(good.substr(0, 514)), HasSubstr("has 5 bytes, but the file ends after 2"));
  EXPECT_THAT(error_of(TarBuilder().add("a/b", "x", '0', 0777777777L).done()), HasSubstr("it is truncated"));
  EXPECT_THAT(error_of(TarBuilder().add("../../etc/passwd", "x").done()), HasSubstr("contains \"../\""));
  EXPECT_THAT(error_of(TarBuilder().add("a/../../b", "x").done()), HasSubstr("contains \"../\""));
  EXPECT_THAT(error_of(TarBuilder().add("/etc/passwd", "x").done()), HasSubstr("absolute"));
  EXPECT_THAT(error_of(TarBuilder().add("pax", "99 path=x\n", 'x').add("a", "").done()), HasSubstr("extended header"));
  EXPECT_THAT(error_of("\x1F\x8B" + std::string(600, 'x')), HasSubstr("compressed (gzip)"));
  EXPECT_THAT(error_of(std::string(2000, 'x')), HasSubstr("at byte 0; it is damaged or not a tar"));
  EXPECT_THROW(TarFile("/nowhere/x.tar"), DataError);
  EXPECT_THROW(TarFile("/tmp"), DataError);
}

TEST(Tar, ReadsNothingBeyondTheEnd) {
  const TempFolder folder;
  folder.write("x.tar", TarBuilder().add("a", "hello").done());
  const TarFile tar(folder / "x.tar");
  std::vector<std::byte> bytes;
  EXPECT_THROW(tar.read(2000, 100, bytes), DataError);
  EXPECT_THROW(tar.read(-1, 1, bytes), DataError);
  std::filesystem::resize_file(folder / "x.tar", 514);  // while we hold it open
  EXPECT_THROW(tar.read(tar.members()[0].offset, 5, bytes), DataError);
}

}  // namespace
}  // namespace stoker::data
