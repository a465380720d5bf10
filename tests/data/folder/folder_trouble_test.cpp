// SPDX-License-Identifier: Apache-2.0
// Files in people's folders that are not images are ignored with a finding. Folders that cannot be trained on are
// refused with a reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/folder/image_folder.h"
#include "support/as_nobody.h"
#include "support/images.h"
#include "support/tar_builder.h"
#include "support/temp_folder.h"

namespace stoker::data {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::small_png;
using testing::TempFolder;
namespace fs = std::filesystem;

void write_two_classes(const TempFolder& folder, const std::string& prefix = "") {
  for (int i = 0; i < 4; ++i) {
    folder.write(prefix + (i < 2 ? "a/" : "b/") + std::to_string(i) + ".png", small_png(i));
  }
}

std::string error_of(const fs::path& path) {
  try {
    (void)open_image_folder(path);
  } catch (const DataError& error) {
    return error.what();
  }
  return "read";
}

TEST(FolderTrouble, RefusesFoldersThatCannotBeTrainedOn) {
  const TempFolder empty, no_images, one_class, loose, no_train, twice;
  EXPECT_THAT(error_of(empty.path()),
              AllOf(HasSubstr("no labelled training images"), HasSubstr("expected: one folder of images per class")));
  EXPECT_THAT(error_of(empty / "missing"), HasSubstr("does not exist"));
  no_images.write("a/notes.txt", "hello");
  no_images.write("b/x.gif", "GIF89a");
  EXPECT_THAT(error_of(no_images.path()),
              AllOf(HasSubstr("files that are not images ignored: 1, for example a/notes.txt"),
                    HasSubstr("unsupported format (gif)")));
  one_class.write("a/1.png", small_png(1));
  one_class.write("a/2.png", small_png(2));
  EXPECT_THAT(error_of(one_class.path()), HasSubstr("only one class, \"a\"; classification needs at least two"));
  loose.write("1.png", small_png(1));
  EXPECT_THAT(error_of(loose.path()), HasSubstr("images outside class folders ignored: 1, for example 1.png"));
  write_two_classes(no_train, "test/");
  EXPECT_THAT(error_of(no_train.path()), HasSubstr("there is a folder \"test\" but no training folder"));
  write_two_classes(twice, "train/");
  write_two_classes(twice, "val/");
  write_two_classes(twice, "valid/");
  EXPECT_THAT(error_of(twice.path()), HasSubstr("\"val\" and \"valid\" are both names of the val split"));
  ASSERT_EQ(::mkfifo((empty / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_of(empty / "pipe"), HasSubstr("is neither a folder nor a file"));
  EXPECT_THAT(error_of(one_class / "a/1.png"), HasSubstr("not a tar"));
}

TEST(FolderTrouble, AClassOfValidationMustOccurInTraining) {
  const TempFolder folder;
  write_two_classes(folder, "train/");
  folder.write("val/a/1.png", small_png(9));
  EXPECT_THAT(open_image_folder(folder.path()).findings,
              Contains(HasSubstr("the val split has no images of 1 of the 2 classes")));
  folder.write("val/zebra/1.png", small_png(10));
  EXPECT_THAT(error_of(folder.path()), HasSubstr("class \"zebra\" of the val split does not occur in train"));
}

TEST(FolderTrouble, NamesFilesThatAreNotImages) {
  const TempFolder folder;
  write_two_classes(folder);
  ASSERT_EQ(::mkfifo((folder / "a/pipe.png").c_str(), 0600), 0);
  fs::create_directory_symlink(folder.path(), folder / "a/loop");
  fs::create_symlink("circle.png", folder / "b/circle.png");
  fs::create_symlink("nowhere.png", folder / "b/broken.png");
  folder.write("a/.hidden.png", "x");
  folder.write(".git/config", "x");
  folder.write("__MACOSX/a/1.png", "x");
  folder.write("README", "read me");
  fs::create_directory(folder / "empty class");
  const ImageFolder found = open_image_folder(folder.path(), {.val = 0});
  EXPECT_EQ(found.train.size(), 4);
  EXPECT_EQ(found.classes, (std::vector<std::string>{"a", "b"}));
  EXPECT_THAT(
      found.findings,
      Contains(HasSubstr("special files (FIFO, device, socket, link in a tar) ignored: 1, for example a/pipe.png")));
  EXPECT_THAT(found.findings, Contains(HasSubstr("links to a parent folder ignored: 1, for example a/loop")));
  EXPECT_THAT(found.findings, Contains(HasSubstr("broken links ignored: 2,")));
  EXPECT_THAT(found.findings, Contains(HasSubstr("hidden files or folders ignored: 3,")));
  EXPECT_THAT(found.findings, Contains(HasSubstr("files that are not images ignored: 1, for example README")));
  EXPECT_THAT(found.findings,
              Contains(HasSubstr("the folder \"empty class\" contains no images and is not used as a class")));
}

TEST(FolderTrouble, FollowsLinksAndLooksIntoFilesWithoutEnding) {
  const TempFolder folder, elsewhere;
  write_two_classes(folder);
  elsewhere.write("deep/9.PNG", small_png(9));
  fs::create_directory_symlink(elsewhere.path(), folder / "c");
  folder.write("a/no_ending", small_png(7));
  const ImageFolder found = open_image_folder(folder.path(), {.val = 0});
  EXPECT_EQ(found.classes, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(found.train.source->key(2), "a/no_ending");
  EXPECT_EQ(found.train.source->key(5), "c/deep/9.PNG");
}

TEST(FolderTrouble, NamesMayHoldAnyBytes) {
  const TempFolder folder;
  write_two_classes(folder, "train/");
  folder.write("train/k\xC3\xA4se und brot/a b.png", small_png(8));
  folder.write("train/bad\xFF\n/1.png", small_png(9));
  folder.write("train/a/same.png", small_png(10));  // the same file name in two classes
  folder.write("train/b/same.png", small_png(11));
  const ImageFolder found = open_image_folder(folder.path(), {.val = 0});
  EXPECT_EQ(found.classes, (std::vector<std::string>{"a", "b", "bad\xFF\n", "k\xC3\xA4se und brot"}));
  EXPECT_EQ(found.train.size(), 8);
  std::vector<std::byte> bytes;
  found.train.source->read(6, bytes);
  EXPECT_EQ(as_text(bytes), small_png(9));
  EXPECT_THAT(found.train.source->name(6), HasSubstr("bad\\xff\\x0a/1.png"));
}

// Root may read everything, so a child process checks this as the user nobody.
TEST(FolderTrouble, AnUnreadableFolderIsNamed) {
  const TempFolder folder;
  write_two_classes(folder);
  fs::permissions(folder.path(), fs::perms{0755});
  fs::permissions(folder / "b", fs::perms::none);
  const auto look = [&] {
    const std::string error = error_of(folder.path());
    return error.find("/b: folder cannot be read: Permission denied") != std::string::npos ? 0 : 1;
  };
  EXPECT_EQ(testing::as_nobody(look), 0);
  fs::permissions(folder / "b", fs::perms{0755});
  fs::permissions(folder / "b/2.png", fs::perms::none);
  const auto read = [&] {
    const ImageFolder found = open_image_folder(folder.path(), {.val = 0});
    std::vector<std::byte> bytes;
    try {
      found.train.source->read(2, bytes);
    } catch (const DataError& error) {
      return std::string(error.what()).find("b/2.png: cannot be opened") != std::string::npos ? 0 : 1;
    }
    return 2;
  };
  EXPECT_EQ(testing::as_nobody(read), 0);
}

// Scanning a tar of 20,001 members only reads their headers once; a quadratic algorithm would take minutes.
TEST(FolderTrouble, ManyFilesScanWithProgress) {
  const TempFolder folder;
  testing::TarBuilder tar;
  for (int i = 0; i < 20'001; ++i) {
    tar.add((i % 2 == 0 ? "a/" : "b/") + std::to_string(i) + ".png", "");
  }
  folder.write("train.tar", tar.done());
  std::vector<std::int64_t> seen;
  const ImageFolder found = open_image_folder(folder.path(), {}, [&](std::int64_t files) { seen.push_back(files); });
  EXPECT_EQ(found.train.size() + found.val.size(), 20'001);
  EXPECT_THAT(seen, ::testing::IsSupersetOf({5'000, 10'000, 15'000, 20'000, 20'001}));
  EXPECT_THAT(found.findings, Contains(HasSubstr("did not check whether images of train are also in val or test")));
}

}  // namespace
}  // namespace stoker::data
