// SPDX-License-Identifier: Apache-2.0
// Problems planted in a table's columns are found, and nothing is found in columns without one.
#include "stoker/tasks/table/columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "stoker/base/counter_rng.h"
#include "stoker/base/error.h"
#include "stoker/base/fmt.h"
#include "stoker/tasks/table/remarks.h"
#include "support/temp_folder.h"

namespace stoker::tasks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

data::TableData table_of(const std::string& text) {
  const testing::TempFolder folder;
  folder.write("t.csv", text);
  return data::read_table(folder / "t.csv", {});
}

std::vector<std::int64_t> all_rows(const data::TableData& table) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(table.rows));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

// 400 rows, whose target has three classes. `words` gives the class in words, `code` by ranges of numbers, `file` by
// the beginning of a name, and `row` because the rows are sorted. `likely` is right nine times out of ten, and `noise`
// is unrelated.
std::string planted() {
  CounterRng random(7, 0, 0, RandomOp::kImage);
  std::string text = "row,words,code,file,likely,noise,fraction,target\n";
  const char* const words[] = {"no", "perhaps", "yes"};
  for (int i = 0; i < 400; ++i) {
    const int target = i * 3 / 400;
    const int likely = random.uniform(0, 1) < 0.9 ? target : static_cast<int>(random.uniform(0, 3));
    text += fmt::format("{},{},{:.4f},{}-{}.jpg,{},{},{:.6f},{}\n", i + 1, words[target],
                        target + 0.9 * random.uniform(0, 1), words[target], i * 7919 % 1000, likely,
                        static_cast<int>(random.uniform(0, 5)), random.uniform(0, 1), target);
  }
  return text;
}

std::vector<std::string> telling(const data::TableData& table, const std::string& target, bool regression) {
  std::vector<std::string> names;
  for (const std::size_t i : columns_that_tell(table, all_rows(table), data::find_column(table, target), regression)) {
    names.push_back(table.columns[i].name);
  }
  return names;
}

TEST(TableColumns, ThoseThatAloneTellAClass) {
  const data::TableData table = table_of(planted());
  EXPECT_THAT(telling(table, "target", false), ElementsAre("row", "words", "code", "file"));
  EXPECT_THAT(telling(table, "noise", false), IsEmpty());
}

TEST(TableColumns, ThoseThatAloneTellANumber) {
  CounterRng random(8, 0, 0, RandomOp::kImage);
  std::string text = "euro,size,noise,price\n";
  for (int i = 0; i < 500; ++i) {
    const double price = random.uniform(10, 1000);
    text += fmt::format("{:.3f},{:.3f},{:.3f},{:.3f}\n", 0.92 * price + 3, price * random.uniform(0.8, 1.2),
                        random.uniform(0, 1), price);
  }
  EXPECT_THAT(telling(table_of(text), "price", true), ElementsAre("euro"));
}

// One row in a hundred is of the rare class: always guessing the other one is right as often as required.
TEST(TableColumns, ARareClassIsNotToldByGuessing) {
  std::string text = "noise,tells,target\n";
  for (int i = 0; i < 5000; ++i) {
    text += fmt::format("{},{},{}\n", i % 7, i % 100 == 13 ? "x" : "", i % 100 == 13 ? "rare" : "usual");
  }
  EXPECT_THAT(telling(table_of(text), "target", false), ElementsAre("tells"))
      << "a missing value may tell the class, too";
}

TEST(TableColumns, EachHasANature) {
  std::string text = "id,fraction,whole,gaps,kind,key,sentence,title,same,sparse,spoilt\n";
  for (int i = 0; i < 100; ++i) {
    text += fmt::format("{},{:.3f},{},{},{},k{:03},the {} quick fox of {} hills,Part {} of the long story,x,{},{}\n",
                        1000 + i, i * 0.37, i % 9, i * 50, i % 3 == 0 ? "a" : "b", i, i, i * 3, i % 4,
                        i % 20 == 0 ? "y" : "", i % 30 == 9 ? "1 000" : fmt::format("{:.1f}", i * 2.5));
  }
  const data::TableData table = table_of(text);
  const auto nature = [&](const std::string& name) {
    return look_at(table.columns[data::find_column(table, name)], all_rows(table)).nature;
  };
  EXPECT_EQ(nature("id"), ColumnNature::kRowNumbers);
  EXPECT_EQ(nature("fraction"), ColumnNature::kNumbers);
  EXPECT_EQ(nature("whole"), ColumnNature::kNumbers);
  EXPECT_EQ(nature("gaps"), ColumnNature::kNumbers) << "all different, but not row numbers";
  EXPECT_EQ(nature("kind"), ColumnNature::kCategories);
  EXPECT_EQ(nature("key"), ColumnNature::kAllOther);
  EXPECT_EQ(nature("sentence"), ColumnNature::kFreeText);
  EXPECT_EQ(nature("title"), ColumnNature::kCategories) << "long, but values repeat";
  EXPECT_EQ(nature("spoilt"), ColumnNature::kSpoilt);
  EXPECT_EQ(nature("same"), ColumnNature::kConstant);
  EXPECT_EQ(nature("sparse"), ColumnNature::kConstant);
  EXPECT_EQ(look_at(table.columns[9], all_rows(table)).missing, 95);
}

// pandas writes inf, R writes Inf: a table reads neither as a number.
TEST(TableRemarks, AnInfinityAmongNumbersIsNamed) {
  std::string text = "value,class\n";
  for (int i = 0; i < 60; ++i) {
    text += fmt::format("{},{}\n", i == 7 ? "inf" : fmt::format("{:.2f}", i * 1.3), i % 3 == 0 ? "a" : "b");
  }
  const data::TableData table = table_of(text);
  const auto remarks = remarks_on(table, all_rows(table), {.target = "class"});
  ASSERT_FALSE(remarks.empty());
  EXPECT_EQ(remarks[0].id, "spoilt_numbers");
  EXPECT_THAT(remarks[0].text, HasSubstr("1 other value such as \"inf\""));
}

TEST(TableRemarks, AFirstRowOfDataIsNamed) {
  std::string rows;
  for (int i = 0; i < 60; ++i) {
    rows += fmt::format("{}.5,{},{}\n", i, i % 7, i % 3 == 0 ? "a" : "b");
  }
  const auto ids = [](const data::TableData& table, const std::string& target) {
    std::string text;
    for (const ColumnRemark& each : remarks_on(table, all_rows(table), {.target = target})) {
      text += each.id + " ";
    }
    return text;
  };
  EXPECT_EQ(ids(table_of(rows), "a"), "header ");
  EXPECT_EQ(ids(table_of("x,y,class\n" + rows), "class"), "");
  EXPECT_EQ(ids(table_of("1,2,3\n" + rows), "3"), "") << "the names of columns without a header row";
  try {
    (void)data::find_column(table_of(rows), "3");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("set header=off; then the columns are named 1 to 3"));
  }
}

TEST(TableRemarks, NameWhatAModelOfTablesCannotLearnFrom) {
  std::string text = "title,body,class\n";
  for (int i = 0; i < 60; ++i) {
    text += fmt::format("News {} from the wire,\"Story {}, told in rather many words\",{}\n", i, i * 17, i * 31 % 4);
  }
  const data::TableData table = table_of(text);
  const auto remarks = remarks_on(table, all_rows(table), {.target = "class"});
  ASSERT_EQ(remarks.size(), 3U);
  EXPECT_EQ(remarks[0].id, "free_text");
  EXPECT_THAT(remarks[0].text, HasSubstr("\"title\""));
  EXPECT_THAT(remarks[0].advice, HasSubstr("leave_out=title"));
  EXPECT_THAT(remarks[1].text, HasSubstr("\"body\""));
  EXPECT_EQ(remarks[2].id, "nothing_left");
  EXPECT_THAT(remarks_on(table, all_rows(table), {.left_out = {"title", "body"}, .target = "class"}), IsEmpty());
  EXPECT_THROW((void)remarks_on(table, all_rows(table), {.target = "klass"}), DataError);
}

}  // namespace
}  // namespace stoker::tasks
