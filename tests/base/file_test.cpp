// SPDX-License-Identifier: Apache-2.0
// Files are replaced as a whole; what is not a regular file is never replaced.
#include "stoker/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/temp_folder.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using testing::TempFolder;

TEST(WriteFileAtomically, ReplacesAFileAndLeavesNothingElse) {
  const TempFolder folder;
  for (const char* text : {"old", "the new text"}) {
    write_file_atomically(folder / "file", text);
    EXPECT_EQ(read_text(folder / "file"), text);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(WriteFileAtomically, ALinkStaysAndItsFileIsReplaced) {
  const TempFolder folder;
  folder.write("elsewhere/file", "old");
  fs::create_symlink(folder / "elsewhere/file", folder / "link");
  write_file_atomically(folder / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(read_text(folder / "elsewhere/file"), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "elsewhere"), fs::directory_iterator()), 1);
}

TEST(WriteFileAtomically, APipeIsWrittenTo) {
  const TempFolder folder;
  const fs::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  fs::create_symlink(pipe, folder / "link");
  for (const char* name : {"pipe", "link"}) {
    write_file_atomically(folder / name, "text");
    char text[8] = {};
    EXPECT_EQ(::read(reader, text, sizeof text), 4) << name;
    EXPECT_STREQ(text, "text");
    EXPECT_TRUE(fs::is_fifo(pipe));
  }
  ::close(reader);
}

}  // namespace
}  // namespace stoker
