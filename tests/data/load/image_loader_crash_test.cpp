// SPDX-License-Identifier: Apache-2.0
// A program that is killed while it loads leaves nothing behind: no shared memory, no lock, and no file next to the
// data or in the temporary folder. Another process continues from the same place.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <set>
#include <sstream>

#include "support/images.h"
#include "support/killed_writer.h"
#include "support/temp_folder.h"

namespace stoker::testing {
namespace {

// Everything below a folder: paths, sizes and modification times.
std::set<std::string> listing(const std::filesystem::path& folder) {
  std::set<std::string> entries;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    struct stat facts {};
    EXPECT_EQ(::lstat(entry.path().c_str(), &facts), 0);
    entries.insert(
        fmt::format("{} {} {}.{}", entry.path().native(), facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec));
  }
  return entries;
}

std::set<std::string> shared_memory() {
  std::set<std::string> names;
  std::error_code none;  // some containers have no /dev/shm
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", none)) {
    names.insert(entry.path().native());
  }
  return names;
}

// A line of /proc/locks, such as "1: POSIX ADVISORY WRITE 4711 ...", names the process that holds the lock.
bool holds_a_lock(pid_t process) {
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    const std::vector<std::string> word{std::istream_iterator<std::string>(words), {}};
    if (word.size() > 4 && word[4] == std::to_string(process)) {
      return true;
    }
  }
  return false;
}

// Whether the process has a file below the folder mapped or open.
bool uses(pid_t process, const std::string& folder) {
  const std::filesystem::path about = "/proc/" + std::to_string(process);
  std::ifstream maps(about / "maps");
  const std::string mapped{std::istreambuf_iterator<char>(maps), {}};
  EXPECT_FALSE(mapped.empty());
  bool found = mapped.find(folder) != std::string::npos;
  std::error_code gone;  // the file may have been closed in the meantime
  for (const auto& entry : std::filesystem::directory_iterator(about / "fd")) {
    found = found || std::filesystem::read_symlink(entry.path(), gone).native().starts_with(folder);
  }
  return found;
}

class LoaderCrash : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 50; ++i) {
      folder_.write("set/" + std::string(i % 2 == 0 ? "a/" : "b/") + std::to_string(i) + ".png",
                    small_png(i, 40, 30).substr(0, i == 7 ? 60 : std::string::npos));
    }
    std::filesystem::create_directory(folder_ / "temp");
    task_ = {.data = folder_ / "set", .cache = folder_ / "cache", .calls = 1 << 30, .way = {.threads = 4, .ranks = 2}};
  }

  [[nodiscard]] std::unique_ptr<StokerProcess> begin(const WriterTask& task) const {
    const auto in_temp = [temp = folder_ / "temp"] { return ::setenv("TMPDIR", temp.c_str(), 1); };
    return std::make_unique<StokerProcess>(task.words(), "/", in_temp, batch_writer());
  }
  // Kills the writer after that many lines; returns the complete lines that it wrote.
  static std::vector<std::string> kill_after(StokerProcess& writer, int lines) {
    EXPECT_TRUE(writer.wait_for("\n", lines)) << writer.err();
    writer.signal(SIGKILL);
    const Finished finished = writer.finish();
    EXPECT_EQ(finished.code, 128 + SIGKILL) << finished.err;
    return whole_lines(finished.out);
  }

  TempFolder folder_;
  WriterTask task_;
};

TEST_F(LoaderCrash, LeavesNothingBehind) {
  const auto data_before = listing(folder_ / "set");
  std::mt19937 random(3);
  std::size_t fewest_new = 1000;  // new names in shared memory; other programs may add some, so the minimum counts
  for (int round = 0; round < 4; ++round) {
    const auto memory_before = shared_memory();
    const auto writer = begin(task_);
    ASSERT_TRUE(writer->wait_for("\n")) << writer->err();
    EXPECT_FALSE(uses(writer->id(), "/dev/shm"));
    EXPECT_FALSE(holds_a_lock(writer->id()));
    kill_after(*writer, 8 + static_cast<int>(random() % 60));  // more than an epoch, so that the cache has been written
    std::size_t fresh = 0;
    for (const std::string& name : shared_memory()) {
      fresh += memory_before.contains(name) ? 0 : 1;
    }
    fewest_new = std::min(fewest_new, fresh);
    EXPECT_EQ(listing(folder_ / "set"), data_before);
    EXPECT_EQ(listing(folder_ / "temp"), std::set<std::string>{});
    for (const std::string& entry : listing(folder_ / "cache")) {
      EXPECT_EQ(entry.find(".tmp"), std::string::npos) << entry;
    }
  }
  EXPECT_EQ(fewest_new, 0U);
  EXPECT_FALSE(std::filesystem::is_empty(folder_ / "cache"));  // the test is meaningful only if something was written
}

TEST_F(LoaderCrash, AnotherGoesOnWhereItWas) {
  task_.calls = 30;
  const std::vector<std::string> expected = whole_lines(begin(task_)->finish().out);
  ASSERT_EQ(expected.size(), 30U);
  std::mt19937 random(4);
  std::vector<std::string> lines;
  for (int kills = 0; kills < 4; ++kills) {
    WriterTask task = task_;
    task.calls = 1 << 30;
    task.start = after(lines);
    const auto more = kill_after(*begin(task), 1 + static_cast<int>(random() % 6));
    lines.insert(lines.end(), more.begin(), more.end());
  }
  for (std::size_t i = 0; i < std::min(lines.size(), expected.size()); ++i) {
    EXPECT_EQ(lines[i], expected[i]);
  }
}

}  // namespace
}  // namespace stoker::testing
