// SPDX-License-Identifier: Apache-2.0
// quarantine.csv: each bad sample is listed once, across the parts of a run, and a CSV reader can read the file.
#include "stoker/job/quarantine.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/table/csv.h"
#include "support/as_nobody.h"
#include "support/temp_folder.h"

namespace stoker::job {
namespace {

std::vector<std::vector<std::string>> rows_of(const std::filesystem::path& path) {
  std::vector<std::byte> bytes;
  read_file(path, bytes);
  data::CsvReader reader(as_text(bytes), path.native());
  std::vector<std::vector<std::string>> rows;
  for (std::vector<std::string> fields; reader.next(fields);) {
    rows.push_back(fields);
  }
  return rows;
}

const Say kSilent = [](const std::string&) {};

TEST(Quarantine, NamesEachSampleOnceAcrossPartsOfARun) {
  const testing::TempFolder run;
  const core::BadSample first{.step = 3,
                              .index = 17,
                              .name = "a/odd, \"name\".jpg",
                              .reason = "damaged at byte 7 of 9: cut",
                              .replaced_by = "b/2.jpg"};
  const core::BadSample second{
      .epoch = 1, .index = 4, .name = "b/empty.png", .reason = "is empty (0 bytes)", .replaced_by = ""};
  {
    Quarantine quarantine(run.path(), kSilent);
    EXPECT_FALSE(std::filesystem::exists(run.path() / "quarantine.csv")) << "nothing was bad yet";
    EXPECT_TRUE(quarantine.add(first));
    EXPECT_FALSE(quarantine.add(first));
  }
  {
    Quarantine resumed(run.path(), kSilent);
    EXPECT_FALSE(resumed.add(first));
    EXPECT_TRUE(resumed.add(second));
  }
  const std::vector<std::vector<std::string>> expected = {
      {"sample", "reason", "replaced_by", "epoch", "step"},
      {"a/odd, \"name\".jpg", "damaged at byte 7 of 9: cut", "b/2.jpg", "0", "3"},
      {"b/empty.png", "is empty (0 bytes)", "", "1", "0"}};
  EXPECT_EQ(rows_of(run.path() / "quarantine.csv"), expected);
}

// A limit on the size of files simulates a full disk: the second row is cut half-way.
TEST(Quarantine, AFullDiskIsSaidOnceAndEndsNothing) {
  const testing::TempFolder run;
  std::filesystem::permissions(run.path(), std::filesystem::perms::all);
  const int code = testing::as_nobody([&] {
    std::vector<std::string> said;
    Quarantine quarantine(run.path(), [&](const std::string& words) { said.push_back(words); });
    if (!quarantine.add({.name = "a.png", .reason = "is empty", .replaced_by = ""})) {
      return 1;
    }
    const auto full = static_cast<rlim_t>(std::filesystem::file_size(run / "quarantine.csv") + 8);
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    const rlim_t before = std::exchange(limit.rlim_cur, full);
    ::setrlimit(RLIMIT_FSIZE, &limit);
    for (const char* name : {"b.png", "c.png"}) {
      if (!quarantine.add({.name = name, .reason = "is empty", .replaced_by = ""}) ||
          quarantine.add({.name = name, .reason = "is empty", .replaced_by = ""})) {
        return 2;
      }
    }
    if (said.size() != 1 || said.front().find("quarantine.csv") == std::string::npos) {
      return 3;
    }
    limit.rlim_cur = before;  // there is room again
    ::setrlimit(RLIMIT_FSIZE, &limit);
    return quarantine.add({.name = "d.png", .reason = "is empty", .replaced_by = ""}) ? 0 : 4;
  });
  ASSERT_EQ(code, 0);
  const auto rows = rows_of(run / "quarantine.csv");
  ASSERT_EQ(rows.size(), 3U) << "a cut row was left in the file";
  EXPECT_EQ(rows[1].front(), "a.png");
  EXPECT_EQ(rows[2].front(), "d.png");
}

// A power cut may leave the file cut at any length. A resumed run keeps the complete rows and appends to them.
TEST(Quarantine, ATornLastRowIsDropped) {
  const testing::TempFolder run;
  const core::BadSample first{.step = 3,
                              .index = 17,
                              .name = "a/odd, \"name\"\nof two lines.jpg",
                              .reason = "damaged",
                              .replaced_by = "b/2.jpg"};
  const core::BadSample second{
      .epoch = 1, .index = 4, .name = "b/empty.png", .reason = "is \"empty\"", .replaced_by = ""};
  {
    Quarantine quarantine(run.path(), kSilent);
    EXPECT_TRUE(quarantine.add(first));
    EXPECT_TRUE(quarantine.add(second));
  }
  const std::string complete = read_text(run / "quarantine.csv");
  const auto rows = rows_of(run / "quarantine.csv");
  for (std::size_t length = 0; length < complete.size(); ++length) {
    run.write("quarantine.csv", complete.substr(0, length));
    Quarantine resumed(run.path(), kSilent);
    resumed.add(first);
    resumed.add(second);
    EXPECT_EQ(rows_of(run / "quarantine.csv"), rows) << "cut to " << length;
  }
}

TEST(Quarantine, ABadQuarantineFileStopsNothing) {
  const testing::TempFolder run;
  std::vector<std::string> said;
  const auto listen = [&](const std::string& words) { said.push_back(words); };
  run.write("quarantine.csv", "sample,reason\n\"a.png\" and more,x\nb.png,y\n");
  {
    Quarantine quarantine(run.path(), listen);
    EXPECT_TRUE(quarantine.add({.name = "c.png", .reason = "is empty", .replaced_by = ""}));
  }
  EXPECT_EQ(said.size(), 1U);
  EXPECT_NE(read_text(run / "quarantine.csv").find("b.png,y\nc.png,"), std::string::npos) << "nothing is lost";
  std::filesystem::remove(run / "quarantine.csv");
  std::filesystem::create_directory(run / "quarantine.csv");
  Quarantine quarantine(run.path(), listen);
  EXPECT_TRUE(quarantine.add({.name = "a.png", .reason = "is empty", .replaced_by = ""}));
  EXPECT_FALSE(quarantine.add({.name = "a.png", .reason = "is empty", .replaced_by = ""}));
  EXPECT_EQ(said.size(), 3U) << "it can be neither read nor written";
}

}  // namespace
}  // namespace stoker::job
