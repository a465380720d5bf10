// SPDX-License-Identifier: Apache-2.0
// Rows that were learned are found again, in this run and in later ones, for the same content and for no other; within
// the limits of memory and disk, and whatever threads and processes do meanwhile.
#include "stoker/data/load/row_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "stoker/base/file.h"
#include "support/as_nobody.h"
#include "support/child.h"
#include "support/jpeg_row_sets.h"
#include "support/temp_folder.h"

namespace stoker::data {
namespace {

using std::chrono::milliseconds;
using testing::EmptySource;
using testing::made_up_key;
using testing::made_up_rows;
using testing::TempFolder;

constexpr std::int64_t kSamples = 2'000;
constexpr std::size_t kRows = 20;

class RowIndexTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::unique_ptr<RowIndex> open() const {
    return std::make_unique<RowIndex>(EmptySource(data_.path(), samples_), options_);
  }
  static void learn(RowIndex& index, std::uint64_t first, std::uint64_t count, std::size_t rows = kRows) {
    for (std::uint64_t i = first; i < first + count; ++i) {
      index.learn(made_up_key(i), made_up_rows(i, rows));
    }
  }
  // How many of these images have exactly these rows; the others must have none.
  [[nodiscard]] static std::uint64_t found(const RowIndex& index, std::uint64_t first, std::uint64_t count,
                                           std::size_t rows = kRows) {
    std::uint64_t sum = 0;
    JpegRows had(3);
    for (std::uint64_t i = first; i < first + count; ++i) {
      index.find(made_up_key(i), had);
      EXPECT_TRUE(had.empty() || had == made_up_rows(i, rows)) << i << " has " << had.size() << " rows";
      sum += had.empty() ? 0 : 1;
    }
    return sum;
  }
  [[nodiscard]] std::filesystem::path list() const {
    return std::filesystem::directory_iterator(cache_ / "rows")->path();
  }
  // Of a list with these images.
  [[nodiscard]] static std::size_t list_bytes(std::uint64_t first, std::uint64_t count, std::size_t rows = kRows) {
    std::vector<std::byte> packed;
    std::size_t sum = 64;
    for (std::uint64_t i = first; i < first + count; ++i) {
      pack_rows(made_up_rows(i, rows), packed);
      sum += 24 + packed.size();
    }
    return sum;
  }

  TempFolder data_, cache_;
  std::int64_t samples_ = kSamples;
  RowIndexOptions options_{.cache = cache_.path()};
};

TEST_F(RowIndexTest, LaterRunsFindWhatWasLearned) {
  {
    const auto index = open();
    EXPECT_EQ(found(*index, 0, kSamples), 0U);
    learn(*index, 0, kSamples);
    EXPECT_EQ(found(*index, 0, kSamples), static_cast<std::uint64_t>(kSamples));
    EXPECT_GT(index->held_bytes(), 0);
    EXPECT_EQ(index->listed(), 0);
  }
  const auto index = open();
  EXPECT_EQ(index->held_bytes(), 0) << "the list is mapped";
  EXPECT_EQ(index->listed(), kSamples);
  EXPECT_EQ(found(*index, 0, kSamples), static_cast<std::uint64_t>(kSamples));
  EXPECT_EQ(found(*index, kSamples, 100), 0U);
  learn(*index, 0, kSamples);
  EXPECT_EQ(index->held_bytes(), 0) << "they are known";
  EXPECT_EQ(std::filesystem::file_size(list()), list_bytes(0, kSamples));
}

TEST_F(RowIndexTest, MoreRowsReplaceFewerAndNotTheOtherWay) {
  for (const bool anew : {false, true}) {  // within a run, and from run to run
    const std::uint64_t first = anew ? 100 : 0;
    auto index = open();
    for (const auto& [learned, known] : {std::pair<std::size_t, std::size_t>{5, 5}, {12, 12}, {7, 12}}) {
      learn(*index, first, 100, learned);
      if (anew) {
        index.reset();
        index = open();
      }
      EXPECT_EQ(found(*index, first, 100, known), 100U);
    }
  }
}

// Each byte of a file counts, and nothing else does.
TEST_F(RowIndexTest, AnyOtherContentIsUnknown) {
  std::vector<std::byte> file(100'000);
  for (std::size_t i = 0; i < file.size(); ++i) {
    file[i] = static_cast<std::byte>(i * i >> 3);
  }
  const auto index = open();
  index->learn(content_key(file), made_up_rows(1, kRows));
  JpegRows rows;
  for (std::size_t at = 0; at < file.size(); at += 37) {
    std::vector<std::byte> changed = file;
    changed[at] ^= std::byte{1};
    index->find(content_key(changed), rows);
    ASSERT_TRUE(rows.empty()) << at;
  }
  index->find(content_key(Bytes(file).first(file.size() - 1)), rows);
  EXPECT_TRUE(rows.empty());
  index->find(content_key(std::vector<std::byte>(file)), rows);
  EXPECT_EQ(rows, made_up_rows(1, kRows));
}

TEST_F(RowIndexTest, AnEntryTakesAtMostOnePercentOfItsImage) {
  const auto index = open();
  std::vector<std::byte> packed;
  JpegRows back;
  int kept = 0;
  for (std::uint32_t bytes = 500; bytes < 40'000; bytes += 97) {
    const JpegRows rows = made_up_rows(bytes, kRows);
    pack_rows(rows, packed);
    index->learn(made_up_key(bytes, bytes), rows);
    index->find(made_up_key(bytes, bytes), back);
    EXPECT_EQ(back.empty(), (24 + packed.size()) * 100 > bytes) << bytes;
    kept += back.empty() ? 0 : 1;
  }
  EXPECT_GT(kept, 100);
  EXPECT_LT(kept, 300);
}

// Every decoder knows where the first row begins.
TEST_F(RowIndexTest, AFirstRowAloneIsNotKept) {
  const auto index = open();
  learn(*index, 0, 10, 1);
  EXPECT_EQ(found(*index, 0, 10, 1), 0);
  learn(*index, 10, 10, 2);
  EXPECT_EQ(found(*index, 10, 10, 2), 10);
}

TEST_F(RowIndexTest, TallImagesBeyondTheFormatAreNotKept) {
  const auto index = open();
  JpegRows rows;
  for (const std::size_t count : {8'000, 20'000}) {
    index->learn(made_up_key(count, 1'000'000'000), made_up_rows(count, count));
    index->find(made_up_key(count, 1'000'000'000), rows);
    EXPECT_EQ(rows.size(), count == 8'000 ? count : 0);
  }
}

// Where the list cannot be written, the limit of memory holds for the whole run.
TEST_F(RowIndexTest, MemoryIsBounded) {
  cache_.write("file", "");
  options_ = {.cache = cache_ / "file" / "x", .most_bytes = 50'000, .write_every = milliseconds(1)};
  const auto index = open();
  learn(*index, 0, kSamples);
  EXPECT_LE(index->held_bytes(), 50'000);
  EXPECT_GT(index->held_bytes(), 45'000);
  const std::uint64_t had = found(*index, 0, kSamples);
  EXPECT_GT(had, 100U);
  learn(*index, 0, kSamples, kRows + 1);
  EXPECT_LE(index->held_bytes(), 50'000);
}

// With a list the limit is no limit for what is learned: memory is freed by each write.
TEST_F(RowIndexTest, WrittenRowsLeaveMemory) {
  constexpr std::uint64_t kImages = 600;
  options_.most_bytes = 20'000;
  options_.write_every = milliseconds(1);
  const auto index = open();
  for (int tries = 0; found(*index, 0, kImages) < kImages && tries < 1'000; ++tries) {
    learn(*index, 0, kImages);
    EXPECT_LE(index->held_bytes(), 20'000);
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_EQ(found(*index, 0, kImages), kImages);
  EXPECT_GT(index->listed(), 400);
}

// All but the last fifth, which is not worth a write.
TEST_F(RowIndexTest, AKilledRunKeepsMost) {
  options_.write_every = milliseconds(1);
  const testing::ChildEnd end = testing::in_child([&] {
    auto* index = open().release();
    learn(*index, 0, 500);
    for (int tries = 0; index->listed() < 400 && tries < 2'000; ++tries) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    return index->listed() < 400 ? 8 : 7;
  });
  EXPECT_EQ(end.code, 7);
  EXPECT_GE(found(*open(), 0, kSamples), 400U);
}

TEST_F(RowIndexTest, WhatAKilledRunWasWritingGoesAfterAnHour) {
  learn(*open(), 0, 100);
  const std::filesystem::path old = list().native() + ".tmp-aaaaaa", young = list().native() + ".tmp-bbbbbb";
  cache_.write(young, "half");
  cache_.write(old, "half");
  std::filesystem::last_write_time(old, std::filesystem::last_write_time(young) - std::chrono::minutes(61));
  learn(*open(), 100, 100);
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(young));
  EXPECT_EQ(found(*open(), 0, 300), 200U);
}

TEST_F(RowIndexTest, ADamagedListIsWrittenAnew) {
  learn(*open(), 0, 300);
  const std::string whole = read_text(list());
  for (const std::size_t at : {std::size_t{3}, std::size_t{50}, std::size_t{70}, whole.size() / 2, whole.size() - 1}) {
    for (const bool cut : {false, true}) {
      std::string damaged = cut ? whole.substr(0, at) : whole;
      damaged[cut ? 0 : at] ^= cut ? '\0' : '\x10';
      cache_.write(list(), damaged);
      EXPECT_LT(found(*open(), 0, 300), 300U);
      learn(*open(), 0, 300);
      EXPECT_EQ(found(*open(), 0, 300), 300U);
      EXPECT_EQ(open()->listed(), 300);
    }
  }
}

// Two runs over the same data, each with the list as it was before the other wrote.
TEST_F(RowIndexTest, RunsThatWriteTheSameListLoseNothing) {
  learn(*open(), 0, 100);
  auto one = open(), other = open();
  learn(*one, 100, 100, kRows - 1);
  learn(*one, 200, 100);
  learn(*other, 100, 100);
  learn(*other, 200, 100, kRows - 1);
  learn(*other, 300, 100);
  one.reset();
  other.reset();
  EXPECT_EQ(found(*open(), 0, 500), 400U);
}

TEST_F(RowIndexTest, ProcessesThatWriteAtTheSameTimeLoseNothing) {
  constexpr std::uint64_t kEach = 250;
  options_.write_every = milliseconds(1);
  std::vector<pid_t> children;
  for (std::uint64_t child = 0; child < 4; ++child) {
    children.push_back(::fork());
    if (children.back() == 0) {
      {
        const auto index = open();
        for (std::uint64_t i = 0; i < kEach; ++i) {
          learn(*index, child * kEach + i, 1);
          std::this_thread::sleep_for(std::chrono::microseconds(300));
        }
      }
      ::_exit(0);
    }
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(found(*open(), 0, kSamples), 4 * kEach);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(cache_ / "rows"), {}), 1) << "no temporary files";
}

// Images are replaced from run to run: what is not used any more goes when there is more than one entry per sample.
TEST_F(RowIndexTest, ReplacedImagesGo) {
  samples_ = 1'000;
  learn(*open(), 0, 1'000);
  {
    const auto index = open();
    EXPECT_EQ(found(*index, 400, 600), 600U);
    learn(*index, 1'000, 400);
  }
  const auto index = open();
  EXPECT_EQ(index->listed(), 1'000);
  EXPECT_EQ(found(*index, 400, 1'000), 1'000U);
  EXPECT_EQ(found(*index, 0, 400), 0U);
}

// A folder, whichever way it is named; the samples around an image do not matter.
TEST_F(RowIndexTest, AListBelongsToAPlace) {
  learn(*open(), 0, 1'500);
  std::filesystem::create_directory(data_ / "sub");
  std::filesystem::create_directory_symlink(data_.path(), cache_ / "link");
  const auto at = [&](const std::filesystem::path& place, std::int64_t samples) {
    return RowIndex(EmptySource(place, samples), options_).listed();
  };
  EXPECT_EQ(at(data_ / "sub" / "..", kSamples), 1'500);
  EXPECT_EQ(at(cache_ / "link", 1'200), 1'500);
  EXPECT_EQ(at(data_ / "sub", kSamples), 0);
  EXPECT_EQ(at("", kSamples), 0);
}

TEST_F(RowIndexTest, SmallSourcesHaveNoList) {
  samples_ = 999;
  learn(*open(), 0, 999);
  EXPECT_FALSE(std::filesystem::exists(cache_ / "rows"));
  options_.from_samples = 999;
  learn(*open(), 0, 999);
  EXPECT_EQ(open()->listed(), 999);
}

TEST_F(RowIndexTest, WithoutAPlaceToKeepThemRowsAreLearnedEachTime) {
  cache_.write("file", "");
  options_.write_every = milliseconds(1);
  for (const std::filesystem::path& cache : {std::filesystem::path(), cache_ / "file" / "x"}) {
    options_.cache = cache;
    const auto index = open();
    learn(*index, 0, 200);
    std::this_thread::sleep_for(milliseconds(20));
    learn(*index, 200, 100);
    EXPECT_EQ(found(*index, 0, 400), 300U);
    EXPECT_EQ(found(*open(), 0, 400), 0U);
  }
}

TEST_F(RowIndexTest, AReadOnlyListIsUsedAndLeftAlone) {
  learn(*open(), 0, 200);
  const std::string before = read_text(list());
  for (const TempFolder* folder : {&data_, &cache_}) {
    std::filesystem::permissions(folder->path(), std::filesystem::perms(0755));
  }
  options_.write_every = milliseconds(1);
  EXPECT_EQ(testing::as_nobody([&] {
              const auto index = open();
              learn(*index, 200, 200);
              std::this_thread::sleep_for(milliseconds(20));
              return found(*index, 0, 500) == 400 ? 0 : 1;
            }),
            0);
  EXPECT_EQ(read_text(list()), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(cache_ / "rows"), {}), 1);
}

// Threads learn more and more rows of the same images and read them, while the list is written and takes them over. At
// each time an image has the first rows of its own.
TEST_F(RowIndexTest, ThreadsLearnAndFindWhileTheListIsWritten) {
  constexpr std::uint64_t kImages = 300;
  constexpr int kThreads = 4;
  options_.write_every = milliseconds(1);
  std::atomic<int> wrong = 0;
  {
    const auto index = open();
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&index, &wrong, thread] {
        JpegRows rows;
        for (std::size_t count = 1; count <= kRows; ++count) {
          for (std::uint64_t i = 0; i < kImages; ++i) {
            const std::uint64_t image = (i * 7 + static_cast<std::uint64_t>(thread) * 31) % kImages;
            index->find(made_up_key(image), rows);
            const JpegRows all = made_up_rows(image, kRows);
            wrong += rows.size() <= kRows && std::equal(rows.begin(), rows.end(), all.begin()) ? 0 : 1;
            if (rows.size() < count) {
              index->learn(made_up_key(image), JpegRows(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)));
            }
          }
        }
      });
    }
    threads.clear();
    EXPECT_EQ(found(*index, 0, kImages), kImages);
    EXPECT_GT(index->listed(), 0) << "it was never written meanwhile";
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(found(*open(), 0, kImages), kImages);
}

}  // namespace
}  // namespace stoker::data
