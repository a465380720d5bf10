// SPDX-License-Identifier: Apache-2.0
// Inspections of tables and texts find planted faults, find nothing in clean data, and count correctly.
#include "stoker/study/inspect/data_sheet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/fmt.h"
#include "stoker/study/inspect/by_kind.h"
#include "support/temp_folder.h"

namespace stoker::study {
namespace {

using stoker::testing::TempFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> ids_of(const DataSheet& sheet) {
  std::vector<std::string> ids;
  for (const DataFinding& finding : sheet.findings) {
    ids.push_back(finding.id);
  }
  return ids;
}

DataSheet sheet_of(const std::filesystem::path& path, const std::vector<std::string>& words = {}) {
  return inspect_by_kind(path, words).value();
}

// A table without faults.
std::string clean(int rows = 300) {
  std::string text = "size,colour,price\n";
  for (int i = 0; i < rows; ++i) {
    text += fmt::format("{:.2f},{},{:.3f}\n", i * 0.37 - 20, i % 3 == 0 ? "red" : "green", i * 7919 % 1009 * 0.5);
  }
  return text;
}

TEST(DataSheet, NothingIsSaidOfACleanTable) {
  const TempFolder folder;
  folder.write("t.csv", clean());
  const DataSheet sheet = sheet_of(folder / "t.csv", {"target=colour"});
  EXPECT_THAT(ids_of(sheet), IsEmpty());
  const auto json = nlohmann::json::parse(sheet_json(sheet));
  EXPECT_EQ(json["counts"],
            nlohmann::json({{"rows", 300}, {"columns", 3}, {"columns_of_numbers", 2}, {"missing_values", 0}}));
  EXPECT_EQ(json["tables"]["columns"][1]["what"], "categories");
  EXPECT_EQ(json["tables"]["columns"][1]["values"], "green 67 %, red 33 %");
  ASSERT_EQ(json["distributions"].size(), 2U);
  EXPECT_EQ(json["distributions"][0]["of"], "size");
  EXPECT_DOUBLE_EQ(json["distributions"][0]["least"], -20);
  EXPECT_NEAR(json["distributions"][0]["median"], 0.37 * 150 - 20, 1e-9);
  std::int64_t counted = 0;
  for (const auto& bin : json["distributions"][0]["bins"]) {
    counted += bin["count"].get<std::int64_t>();
    EXPECT_NEAR(bin["to"].get<double>() - bin["from"].get<double>(), 0.37 * 299 / 24, 1e-9);
  }
  EXPECT_EQ(counted, 300);
  EXPECT_THAT(sheet_text(sheet), HasSubstr("Nothing wrong in 300 rows"));
}

TEST(DataSheet, FindsWhatWasPlantedInATable) {
  const TempFolder folder;
  std::string text = "id,paid,note,total,empty,kind,pay\n";
  for (int i = 0; i < 200; ++i) {
    text += fmt::format("{},{},note {} is of many words,{},{},x,{}\n", i + 1, i % 40 == 7 ? "well" : "badly", i,
                        i % 50 == 9 ? "1;000" : fmt::format("{:.1f}", i * 1.5),
                        i % 4 == 0   ? "y"
                        : i % 8 == 1 ? "z"
                                     : "",
                        i % 40 == 7 ? "high" : "low");
  }
  text += "200,badly,note 199 is of many words,298.5,,x,low\n";
  folder.write("t.csv", text);
  const DataSheet sheet = sheet_of(folder / "t.csv", {"target=pay"});
  EXPECT_THAT(ids_of(sheet),
              ElementsAre("tells_target", "free_text", "spoilt_numbers", "gaps", "imbalance", "same", "constant"));
  EXPECT_THAT(sheet.findings[0].text, HasSubstr("\"paid\" alone predicts the target \"pay\""));
  EXPECT_THAT(sheet_text(sheet), HasSubstr("1 thing is wrong, 5 are doubtful in 201 rows"));
  const DataSheet less = sheet_of(folder / "t.csv", {"target=pay", "leave_out=paid,note"});
  EXPECT_THAT(ids_of(less), ElementsAre("spoilt_numbers", "gaps", "imbalance", "same", "constant"));
  EXPECT_THAT(ids_of(sheet_of(folder / "t.csv")),
              ElementsAre("free_text", "spoilt_numbers", "gaps", "same", "constant"))
      << "no findings about a target that was not named";
}

TEST(DataSheet, ATableWithoutANameRow) {
  const TempFolder folder;
  const std::string text = clean();
  folder.write("t.csv", text.substr(text.find('\n') + 1));
  EXPECT_THAT(ids_of(sheet_of(folder / "t.csv")), ElementsAre("header"));
  EXPECT_THAT(ids_of(sheet_of(folder / "t.csv", {"header=no"})), IsEmpty());
}

TEST(DataSheet, WhatIsAskedOfATableMustBeThere) {
  const TempFolder folder;
  folder.write("t.csv", clean());
  folder.write("t.txt", "some text\n");
  EXPECT_THROW((void)inspect_by_kind(folder / "t.csv", {"target=colours"}), DataError);
  EXPECT_THROW((void)inspect_by_kind(folder / "t.csv", {"leave_out=colours"}), DataError);
  EXPECT_THROW((void)inspect_by_kind(folder / "t.csv", {"batch=3"}), ConfigError);
  EXPECT_THROW((void)inspect_by_kind(folder / "t.txt", {"target=colour"}), ConfigError);
  EXPECT_FALSE(inspect_by_kind(folder / "gone", {}).has_value());
}

// Lines that do not repeat.
std::string prose(int lines, int first = 0) {
  std::string text;
  for (int i = first; i < first + lines; ++i) {
    text += fmt::format("This is line {} of a text in which nothing is said twice.\n", i);
  }
  return text;
}

TEST(DataSheet, CountsTexts) {
  const TempFolder folder;
  folder.write("a.txt", "one two\n\ntwo three\xC3\xA9\n");
  const DataSheet sheet = sheet_of(folder / "a.txt");
  EXPECT_THAT(ids_of(sheet), IsEmpty());
  const auto counts = nlohmann::json::parse(sheet_json(sheet))["counts"];
  EXPECT_EQ(counts, nlohmann::json({{"files", 1},
                                    {"bytes", 21},
                                    {"lines", 3},
                                    {"words", 4},
                                    {"different_words", 3},
                                    {"different_characters", 10}}));
  EXPECT_EQ(std::get<std::string>(sheet.tables[1].rows[0][0]), "two");
}

TEST(DataSheet, FindsWhatWasPlantedInTexts) {
  const TempFolder folder;
  folder.write("clean/a.txt", prose(100));
  EXPECT_THAT(ids_of(sheet_of(folder / "clean")), IsEmpty());
  folder.write("odd/a.txt", prose(100) + "caf\xE9\n");
  folder.write("odd/b.txt", prose(100, 200) + "\x01 and \xEF\xBF\xBD\n");
  folder.write("odd/c.txt", prose(100, 400) + "a line of Windows\r\n");
  const DataSheet odd = sheet_of(folder / "odd");
  EXPECT_THAT(ids_of(odd), ElementsAre("no_utf8", "control", "lost_characters", "crlf"));
  EXPECT_THAT(odd.findings[0].example,
              AllOf(HasSubstr("a.txt"), HasSubstr(fmt::format("byte {}", prose(100).size() + 3))));
  folder.write("repeated/a.txt", prose(50) + prose(50) + prose(100, 300));
  EXPECT_THAT(ids_of(sheet_of(folder / "repeated")), ElementsAre("repeated"));
  folder.write("leak/a.txt", prose(100));
  folder.write("leak/b.txt", prose(100));
  EXPECT_THAT(ids_of(sheet_of(folder / "leak")), ElementsAre("same", "leak"));
}

TEST(DataSheet, NamesAreText) {
  const TempFolder folder;
  folder.write("t.csv", "\"</script><b>\",y\n1,2\n3,4\n");
  const std::string page = sheet_page(sheet_of(folder / "t.csv"));
  EXPECT_EQ(page.find("</script><b>"), std::string::npos);
  EXPECT_EQ(page.find("{{"), std::string::npos);
}

}  // namespace
}  // namespace stoker::study
