// SPDX-License-Identifier: Apache-2.0
// quarantine.csv: each bad sample once, across parts of a run, in a file that a CSV reader reads back.
#include "stoker/job/quarantine.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/csv.h"
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

TEST(Quarantine, NamesEachSampleOnceAcrossPartsOfARun) {
  const testing::TempFolder run;
  const core::BadSample first{0, 3, 17, "a/odd, \"name\".jpg", "damaged at byte 7 of 9: cut", "b/2.jpg"};
  const core::BadSample second{1, 0, 4, "b/empty.png", "is empty (0 bytes)", ""};
  {
    Quarantine quarantine(run.path());
    EXPECT_FALSE(std::filesystem::exists(run.path() / "quarantine.csv")) << "nothing was bad yet";
    EXPECT_TRUE(quarantine.add(first));
    EXPECT_FALSE(quarantine.add(first));
  }
  {
    Quarantine resumed(run.path());
    EXPECT_FALSE(resumed.add(first));
    EXPECT_TRUE(resumed.add(second));
  }
  const std::vector<std::vector<std::string>> expected = {
      {"sample", "reason", "replaced_by", "epoch", "step"},
      {"a/odd, \"name\".jpg", "damaged at byte 7 of 9: cut", "b/2.jpg", "0", "3"},
      {"b/empty.png", "is empty (0 bytes)", "", "1", "0"}};
  EXPECT_EQ(rows_of(run.path() / "quarantine.csv"), expected);
}

TEST(Quarantine, SaysWhenTheDiskRefuses) {
  const testing::TempFolder run;
  Quarantine quarantine(run.path() / "is not there");
  EXPECT_THROW((void)quarantine.add({0, 0, 0, "a.png", "is empty", ""}), IoError);
}

}  // namespace
}  // namespace stoker::job
