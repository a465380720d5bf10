// SPDX-License-Identifier: Apache-2.0
// A scan gives the same result with an index and without, after every change to the data and every damage to the index.
#include "stoker/data/folder/folder_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "stoker/base/error.h"
#include "stoker/base/mapped_file.h"
#include "stoker/data/folder/index_file.h"
#include "support/images.h"
#include "support/later_clock.h"
#include "support/tar_builder.h"
#include "support/temp_folder.h"

namespace stoker::data {
namespace {

namespace fs = std::filesystem;
using testing::later_clock;
using testing::small_png;
using testing::TarBuilder;
using testing::TempFolder;

// Everything that open_image_folder reports, as text.
std::string told(const ImageFolder& folder) {
  std::string text = folder.layout + "\n";
  for (const std::string& each : folder.classes) {
    text += "class " + each + "\n";
  }
  for (const std::string& each : folder.findings) {
    text += each + "\n";
  }
  std::vector<std::byte> bytes;
  for (const ImageSplit* split : {&folder.train, &folder.val, &folder.test}) {
    text += split->name + "\n";
    for (std::int64_t i = 0; i < split->size(); ++i) {
      const std::int64_t sample = split->samples[i];
      text +=
          fmt::format("{} {} {} {}", sample, split->source->key(sample), split->source->name(sample), split->labels[i]);
      try {
        split->source->read(sample, bytes);
        text += fmt::format(" {}\n", bytes.size());
      } catch (const DataError& error) {
        text += error.what();
      }
    }
  }
  return text;
}

std::string told(const fs::path& path, const IndexOptions& index) {
  try {
    return told(open_image_folder(path, {.val = 0.4, .seed = 1}, {}, index));
  } catch (const DataError& error) {
    return error.what();
  }
}

std::string content(const fs::path& path) { return read_text(path); }

class FolderIndexTest : public ::testing::Test {
 protected:
  void write_classes() const {
    for (int i = 0; i < 12; ++i) {
      data_.write(fmt::format("{}/{}.png", "abc"[i % 3], i), small_png(i));
    }
    data_.write("a/deep\n\xFF er/1.png", small_png(20));
    data_.write("a-b/2.png", small_png(21));  // sorts before a/ by path, after it by folder name
    data_.write("b/notes.txt", "no image");
    data_.write("b/.hidden/1.png", small_png(22));
  }
  // The result is the same without the index, when it is made, and when it is used.
  void expect_same(bool is_kept = true) const {
    const std::string expected = told(data_.path(), {});
    EXPECT_EQ(told(data_.path(), index_), expected);
    EXPECT_EQ(told(data_.path(), index_), expected);
    EXPECT_EQ(is_known(), is_kept);
  }
  [[nodiscard]] bool is_known() const { return find_known(data_.path(), index_).has_value(); }
  [[nodiscard]] fs::path file() const { return index_file(index_.cache, data_.path()); }

  TempFolder data_, cache_;
  IndexOptions index_{.cache = cache_ / "stoker", .from_files = 1, .clock = &later_clock};
};

TEST_F(FolderIndexTest, IsMadeOfWhatIsThereAndNothingElse) {
  write_classes();
  expect_same();
  EXPECT_EQ(std::distance(fs::recursive_directory_iterator(cache_.path()), {}), 3) << "stoker/index/HASH";
  std::vector<std::int64_t> seen;
  (void)open_image_folder(
      data_.path(), {}, [&](std::int64_t files) { seen.push_back(files); }, index_);
  EXPECT_EQ(seen, std::vector<std::int64_t>{15});
  EXPECT_EQ(told(data_ / ".", index_), told(data_ / ".", {}));
  const IndexOptions large{.cache = cache_ / "other", .from_files = 16};
  EXPECT_EQ(told(data_.path(), large), told(data_.path(), {}));
  EXPECT_FALSE(fs::exists(large.cache)) << "there are 15 files";
}

TEST_F(FolderIndexTest, FollowsEveryChangeOfClassFolders) {
  write_classes();
  fs::create_directory(data_ / "c/links");
  fs::create_symlink(data_ / "b/1.png", data_ / "c/links/x.png");
  const TempFolder elsewhere;
  elsewhere.write("d/1.png", small_png(30));
  elsewhere.write("e/1.png", small_png(31));
  elsewhere.write("e/2.png", small_png(32));
  data_.write("a/odd", "no image yet");
  expect_same();
  const std::vector<std::pair<std::string, std::function<void()>>> changes = {
      {"one more file", [&] { data_.write("a/new.png", small_png(40)); }},
      {"one file fewer", [&] { fs::remove(data_ / "a/new.png"); }},
      {"a renamed file", [&] { fs::rename(data_ / "a/0.png", data_ / "a/zero.png"); }},
      {"a file replaces another one", [&] { fs::rename(data_ / "b/1.png", data_ / "b/4.png"); }},
      {"one more class", [&] { data_.write("new/1.png", small_png(41)); }},
      {"one class fewer", [&] { fs::remove_all(data_ / "new"); }},
      {"a file in deep folders", [&] { data_.write("c/x/y/z/1.png", small_png(42)); }},
      {"a folder becomes a file",
       [&] {
         fs::remove_all(data_ / "c/x");
         data_.write("c/x", "a file");
       }},
      {"an empty folder", [&] { fs::create_directory(data_ / "void"); }},
      {"a hidden file", [&] { data_.write("b/.secret.png", small_png(43)); }},
      {"a link to a class", [&] { fs::create_directory_symlink(elsewhere / "d", data_ / "linked"); }},
      {"the class behind the link", [&] { elsewhere.write("d/2.png", small_png(44)); }},
      {"the link leads elsewhere",
       [&] {
         fs::remove(data_ / "linked");
         fs::create_directory_symlink(elsewhere / "e", data_ / "linked");
       }},
      {"another folder takes the linked one's place",
       [&] {
         fs::rename(elsewhere / "e", elsewhere / "old");
         fs::rename(elsewhere / "d", elsewhere / "e");
       }},
      {"a file's link breaks, and nothing else changes", [&] { fs::remove(data_ / "b/4.png"); }},
      {"a file without an ending becomes an image in place", [&] { data_.write("a/odd", small_png(45)); }},
      {"a FIFO", [&] { ::mkfifo((data_ / "a/pipe").c_str(), 0600); }},
      {"a table", [&] { data_.write("labels.csv", "filename,label\nb/7.png,x\nb/10.png,y\na/3.png,y\n"); }},
      {"the table changes in place, with the same size",
       [&] { data_.write("labels.csv", "filename,label\nb/7.png,y\nb/10.png,x\na/3.png,x\n"); }},
      {"no table", [&] { fs::remove(data_ / "labels.csv"); }},
      {"a split", [&] { data_.write("test/a/1.png", small_png(46)); }},
      {"only one folder",
       [&] {
         for (const char* name : {"b", "c", "test", "linked", "void", "a-b"}) {
           fs::remove_all(data_ / name);
         }
       }},
      {"no class at all", [&] { fs::remove_all(data_ / "a"); }},
  };
  for (const auto& [what, change] : changes) {
    SCOPED_TRACE(what);
    change();
    const std::string expected = told(data_.path(), {});
    EXPECT_EQ(told(data_.path(), index_), expected);
    EXPECT_EQ(told(data_.path(), index_), expected);
  }
}

TEST_F(FolderIndexTest, ALinkBackIsLookedAtEachTime) {
  write_classes();
  fs::create_directory_symlink(data_.path(), data_ / "c/back");
  expect_same(false);
}

TEST_F(FolderIndexTest, FollowsEveryChangeOfTarFiles) {
  const std::string one = TarBuilder().add("a/1.png", small_png(1)).add("b/1.png", small_png(2)).done();
  const std::string other = TarBuilder().add("b/1.png", small_png(1)).add("c/1.png", small_png(2)).done();
  ASSERT_EQ(one.size(), other.size());
  data_.write("train-0.tar", one);
  expect_same();
  data_.write("train-0.tar", other);  // in place, with the same size
  EXPECT_FALSE(is_known());
  expect_same();
  data_.write("train-1.tar", one);
  expect_same();
  data_.write("val.tar", one);
  expect_same();
  data_.write("val.tar", TarBuilder().add("d/1.png", small_png(3)).done());
  expect_same(false);  // an error: train lacks that class
  data_.write("val.tar", other);
  fs::remove(data_ / "train-1.tar");
  expect_same();
  fs::remove(data_ / "val.tar");
  fs::rename(data_ / "train-0.tar", data_ / "alone.tar");
  expect_same();
  EXPECT_EQ(told(data_ / "alone.tar", index_), told(data_ / "alone.tar", {}));
  EXPECT_TRUE(find_known(data_ / "alone.tar", index_));
  EXPECT_EQ(told(data_ / "alone.tar", index_), told(data_ / "alone.tar", {}));
  data_.write("alone.tar", one);
  EXPECT_EQ(told(data_ / "alone.tar", index_), told(data_ / "alone.tar", {}));
}

// With a clock that ticks slowly, a change right after a scan leaves the stamp unchanged.
TEST_F(FolderIndexTest, ARecentTimeStampProvesNothing) {
  write_classes();
  index_.clock = &file_clock;
  expect_same();
  const auto mapped = MappedFile::open(file());
  FolderIndex index = parse_index(mapped->bytes()).value();
  for (const IndexedFolder& folder : index.folders) {
    EXPECT_FALSE(folder.settled) << folder.path;
  }
  data_.write("a/late.png", small_png(50));
  const auto restamp = [&](bool settled) {
    for (IndexedFolder& folder : index.folders) {
      folder.stamp = stamp_of(data_ / folder.path).value();
      folder.settled = settled;
    }
    write_file_atomically(file(), [&](FileWriter& out) { write_index(index, [&](Bytes bytes) { out.write(bytes); }); });
  };
  restamp(true);
  EXPECT_TRUE(is_known()) << "a settled stamp is trusted";
  restamp(false);
  EXPECT_FALSE(is_known()) << "an unsettled one is not";
  expect_same();
}

TEST_F(FolderIndexTest, ALookThatFoundTheSameIsRemembered) {
  write_classes();
  expect_same();
  fs::permissions(data_ / "a", fs::perms::owner_all);  // gives the folder another stamp
  fs::permissions(data_ / "a", fs::perms::owner_all | fs::perms::others_read);
  const std::string before = content(file());
  EXPECT_TRUE(is_known());
  const std::string after = content(file());
  EXPECT_NE(after, before);
  EXPECT_TRUE(is_known());
  EXPECT_EQ(content(file()), after);
  expect_same();
}

TEST_F(FolderIndexTest, DamagedAtAnyByteItIsRebuilt) {
  data_.write("a/1.png", small_png(1));
  data_.write("b/1.png", small_png(2));
  expect_same();
  const std::string whole = content(file()), expected = told(data_.path(), {});
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    for (const std::string& bytes : {damaged, whole.substr(0, at), whole.substr(at)}) {
      if (bytes == whole) {
        continue;
      }
      ASSERT_EQ(::unlink(file().c_str()), 0);
      cache_.write(file(), bytes);
      ASSERT_FALSE(is_known()) << "byte " << at;
    }
    if (at % 16 == 0) {
      ASSERT_EQ(told(data_.path(), index_), expected) << "byte " << at;
      ASSERT_TRUE(is_known());
    }
  }
}

// The parser does not check the checksum: no value in the index may make it read outside the index.
TEST_F(FolderIndexTest, NoNumberLeadsOutOfIt) {
  data_.write("train.tar", TarBuilder().add("a/1.png", small_png(1)).add("b/1.png", small_png(2)).done());
  expect_same();
  const std::string whole = content(file());
  int read = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int value : {0, 1, 2, 0x7F, 0x80, 0xFF}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(value);
      const std::optional<FolderIndex> index = parse_index(as_bytes(damaged));
      read += index ? 1 : 0;
      for (std::size_t i = 0; index && i < 3; ++i) {
        const IndexedSplit& split = index->splits[i];
        const KeyList keys(nullptr, split.ends, split.text);
        const LabelList labels(split.labels);
        ASSERT_EQ(labels.size(), keys.size());
        for (std::int64_t k = 0; k < keys.size(); ++k) {
          ASSERT_LE(keys[k].size(), whole.size());
          ASSERT_LT(labels[k], std::ssize(index->classes));
        }
      }
    }
    (void)parse_index(as_bytes(whole).first(at));
  }
  EXPECT_GT(read, 0) << "names may be any bytes";
}

TEST_F(FolderIndexTest, OfAnotherVersionOrAnotherFolderItIsRebuilt) {
  write_classes();
  expect_same();
  const auto mapped = MappedFile::open(file());
  const FolderIndex index = parse_index(mapped->bytes()).value();
  const auto write = [&](const FolderIndex& changed) {
    write_file_atomically(file(),
                          [&](FileWriter& out) { write_index(changed, [&](Bytes bytes) { out.write(bytes); }); });
  };
  write(index);
  EXPECT_TRUE(is_known());
  FolderIndex changed = index;
  changed.program = "0.0.9";
  write(changed);
  EXPECT_FALSE(is_known());
  changed = index;
  changed.path += "x";
  write(changed);
  EXPECT_FALSE(is_known());
  expect_same();
}

TEST_F(FolderIndexTest, WithoutAPlaceToKeepItEverythingWorks) {
  write_classes();
  cache_.write("file", "");
  for (const fs::path& cache : {cache_ / "file" / "x", fs::path("/proc/nowhere"), fs::path()}) {
    index_.cache = cache;
    expect_same(false);
  }
  index_.cache = cache_ / "folder";
  fs::create_directories(file());  // a folder where the file should be
  expect_same(false);
}

TEST_F(FolderIndexTest, ManyMayMakeItAtOnce) {
  write_classes();
  const std::string expected = told(data_.path(), {});
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) {
        EXPECT_EQ(told(data_.path(), index_), expected);
        std::error_code ignored;
        fs::remove(file(), ignored);
      }
    });
  }
}

}  // namespace
}  // namespace stoker::data
