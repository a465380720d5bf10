// SPDX-License-Identifier: Apache-2.0
// The command line with tables: training, evaluation, resuming to the same bytes, and helpful refusals.
#include "app/people_table.h"
#include "app/trained_run.h"
#include "support/guessing.h"

namespace stoker::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Table, TrainsResumesAndEvaluates) {
  const TempFolder folder;
  folder.write("people.csv", people());
  const Words train = Words{"train", "people.csv", "target=pay", "--quiet"} + kShort;
  const Finished through = run_stoker(train + Words{"run=through"}, folder.path());
  ASSERT_EQ(through.code, kDone) << through.all();
  EXPECT_THAT(through.out, AllOf(HasSubstr("column \"same\" has at most one value"), HasSubstr("auc")));
  const Finished eval = run_stoker({"eval", "runs/through"}, folder.path());
  EXPECT_EQ(eval.code, kDone) << eval.all();
  EXPECT_THAT(eval.out, AllOf(HasSubstr("test split, 48 samples"), HasSubstr("auc"), HasSubstr("<=50K")));
  EXPECT_TRUE(beats_guessing(folder / "runs/through", 12, 2));  // two classes of about the same size

  const Finished half = run_stoker(
      Words{"train", "people.csv", "target=pay", "--quiet", "run=half", "schedule=constant", "warmup=0", "steps=30"} +
          kShort,
      folder.path());
  ASSERT_EQ(half.code, kDone) << half.all();
  ASSERT_EQ(run_stoker({"resume", "runs/half", "steps=50", "--quiet"}, folder.path()).code, kDone);
  ASSERT_EQ(run_stoker(Words{"train", "people.csv", "target=pay", "--quiet", "run=whole", "schedule=constant",
                             "warmup=0", "steps=50"} +
                           kShort,
                       folder.path())
                .code,
            kDone);
  EXPECT_TRUE(weights_of(folder / "runs/half") == weights_of(folder / "runs/whole"));  // EXPECT_EQ prints the bytes

  EXPECT_THAT(run_stoker({"info", "people.csv"}, folder.path()).out,
              AllOf(HasSubstr("240 rows, 4 columns"), HasSubstr("3 different values"), HasSubstr("14 missing")));
  EXPECT_THAT(
      run_stoker({"info", "runs/through"}, folder.path()).out,
      AllOf(HasSubstr("target pay, from 1 number and 1 category columns"), HasSubstr("2 classes: <=50K, >50K")));
}

// A path in a plan means the same file from every working folder.
TEST(Table, ResumesAndRepeatsFromAnotherFolder) {
  const TempFolder folder;
  folder.write("here/data/people.csv", people());
  folder.write("here/data/rows.csv", people());
  folder.write("there/data/rows.csv", "other\n1\n");
  ASSERT_EQ(run_stoker(Words{"train", "data/people.csv", "target=pay", "test=data/rows.csv", "run=../run", "steps=20",
                             "--quiet"} +
                           kShort,
                       folder / "here")
                .code,
            kDone);
  const Finished resumed = run_stoker({"resume", "../run", "steps=30", "--quiet"}, folder / "there");
  EXPECT_EQ(resumed.code, kDone) << resumed.all();
  const Finished repeated = run_stoker(
      {"train", "../here/data/people.csv", "plan=../run/plan.json", "run=../again", "--quiet"}, folder / "there");
  EXPECT_EQ(repeated.code, kDone) << repeated.all();
}

// Every word for on and off works.
TEST(Table, OnAndOffHaveSeveralNames) {
  const TempFolder folder;
  folder.write("bare.csv", people().substr(std::string("age,job,same,pay\n").size()));
  folder.write("numbers.csv", "a,b\n0,1\n1,0\n0,1\n1,0\n0,1\n1,0\n0,1\n1,0\n0,1\n1,0\n");
  std::vector<Words> commands;
  for (const char* off : {"off", "no", "false", "0"}) {
    commands.push_back({"plan", "bare.csv", "target=4", std::string("header=") + off});
  }
  for (const char* on : {"on", "yes", "true", "1"}) {
    commands.push_back({"plan", "numbers.csv", "target=b", std::string("regression=") + on});
  }
  const auto results = run_all(commands, folder.path());
  for (std::size_t i = 0; i < commands.size(); ++i) {
    EXPECT_EQ(results[i].code, kDone) << ::testing::PrintToString(commands[i]) << results[i].all();
    EXPECT_THAT(results[i].out, HasSubstr(i < 4 ? "48 of the 240 rows" : "about 4000 steps"))
        << ::testing::PrintToString(commands[i]);
  }
}

// A column that repeats the target in other words is named and can be left out. Compressed tables work like plain ones.
TEST(Table, NamesColumnsThatTellTheTarget) {
  const TempFolder folder;
  std::string text = people();
  for (const auto& [pay, paid] :
       {std::pair{">50K\n", ">50K,well\n"}, {"<=50K\n", "<=50K,badly\n"}, {"pay\n", "pay,paid\n"}}) {
    for (std::size_t at = 0; (at = text.find(pay, at)) != std::string::npos; at += std::string(paid).size()) {
      text.replace(at, std::string(pay).size(), paid);
    }
  }
  folder.write("people.csv", text);
  ASSERT_EQ(std::system(("gzip -k " + (folder / "people.csv").native()).c_str()), 0);
  const Words plan = {"plan", "people.csv.gz", "target=pay"};
  const auto results =
      run_all({plan, plan + Words{"leave_out=paid"}, plan + Words{"leave_out=paid,jop"}, plan + Words{"leave_out=pay"}},
              folder.path());
  EXPECT_EQ(results[0].code, kDone) << results[0].all();
  EXPECT_THAT(results[0].out,
              AllOf(HasSubstr("column \"paid\" alone predicts the target \"pay\""), HasSubstr("set leave_out=paid")));
  EXPECT_EQ(results[1].code, kDone) << results[1].all();
  EXPECT_EQ(results[1].out.find("alone predicts"), std::string::npos);
  EXPECT_EQ(results[2].code, kDataError);
  EXPECT_THAT(results[2].err, HasSubstr("did you mean \"job\"?"));
  EXPECT_EQ(results[3].code, kUsage);
  EXPECT_THAT(results[3].err, HasSubstr("leave_out names the target"));
  const Finished train = run_stoker(
      Words{"train", "people.csv.gz", "target=pay", "leave_out=paid", "run=a", "--quiet"} + kShort, folder.path());
  ASSERT_EQ(train.code, kDone) << train.all();
  EXPECT_THAT(run_stoker({"info", "runs/a"}, folder.path()).out, HasSubstr("from 1 number and 1 category columns"));
  const Finished predict = run_stoker({"predict", "runs/a", "people.csv.gz"}, folder.path());
  EXPECT_EQ(predict.code, kDone) << predict.all();
}

TEST(Table, DrawsClassesAlikeAndResumesInTheSameDraws) {
  const TempFolder folder;
  folder.write("people.csv", people());
  const Words train =
      Words{"train", "people.csv", "target=pay", "--quiet", "schedule=constant", "warmup=0", "sampling=balanced"} +
      kShort;
  const Finished whole = run_stoker(train + Words{"run=whole", "steps=40"}, folder.path());
  ASSERT_EQ(whole.code, kDone) << whole.all();
  ASSERT_EQ(run_stoker(train + Words{"run=half", "steps=23"}, folder.path()).code, kDone);
  ASSERT_EQ(run_stoker({"resume", "runs/half", "steps=40", "--quiet"}, folder.path()).code, kDone);
  EXPECT_TRUE(weights_of(folder / "runs/half") == weights_of(folder / "runs/whole"));  // EXPECT_EQ prints the bytes
  const Words uniform{"sampling=uniform", "run=uniform", "steps=40"};
  ASSERT_EQ(run_stoker(Words{"train", "people.csv", "target=pay", "--quiet", "schedule=constant", "warmup=0"} + kShort +
                           uniform,
                       folder.path())
                .code,
            kDone);
  EXPECT_FALSE(weights_of(folder / "runs/uniform") == weights_of(folder / "runs/whole"));
}

TEST(Table, OtherFormatsAreRecognisedAndNamed) {
  using namespace std::string_literals;
  const std::string parquet = "PAR1\0PAR1"s;
  struct Case {
    std::string name, bytes, says;
  };
  const std::vector<Case> cases = {{"x.parquet", parquet, "read_parquet"},
                                   {"packed.parquet", parquet, "read_parquet"},
                                   {"x.feather", "ARROW1\0\0"s, "Feather"},
                                   {"x.arrow", "ARROW1\0\0"s, "Feather"},
                                   {"stream.arrow", "\xFF\xFF\xFF\xFF\x80\0\0\0"s, "datasets.Dataset.from_file"},
                                   {"x.xlsx", "PK\x03\x04\x14\0\x06\0"s, "a spreadsheet"},
                                   {"x.ods", "PK\x03\x04\x14\0\x06\0"s, "a spreadsheet"},
                                   {"x.xls", "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1\0"s, "an old spreadsheet"},
                                   {"x.sqlite", "SQLite format 3\0"s, "SQLite"},
                                   {"x.csv.bz2", "BZh91AY&SY\0"s, "compressed with bzip2"},
                                   {"x.csv.xz", "\3757zXZ\0"s, "compressed with xz"},
                                   {"x.csv.lz4", "\x04\x22\x4D\x18\x60\0"s, "compressed with lz4"}};
  const TempFolder folder;
  std::vector<Words> commands;
  for (const Case& each : cases) {
    folder.write(each.name, each.bytes);
    commands.push_back({"train", each.name, "target=a"});
  }
  ASSERT_EQ(std::system(("gzip " + (folder / "packed.parquet").native()).c_str()), 0);
  commands[1][1] += ".gz";
  const auto results = run_all(commands, folder.path());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(results[i].code, kDataError) << cases[i].name << results[i].all();
    EXPECT_THAT(results[i].err, HasSubstr(cases[i].says)) << cases[i].name;
  }
}

TEST(Table, WhatCannotBeIsRefused) {
  const TempFolder folder;
  folder.write("people.csv", people());
  folder.write("dots.csv", people("."));
  folder.write("ragged.csv", "a,b\n1,2\n1\n");
  folder.write("empty.csv", "");
  folder.write("short.csv", "a,b\n1,2\n");
  struct Case {
    Words words;
    int code;
    Words says;
  };
  const std::vector<Case> cases = {
      {{"train", "people.csv"}, kUsage, {"set target=NAME", "age, job, same, pay"}},
      {{"train", "people.csv", "target=pai"}, kDataError, {"unknown column \"pai\"", "did you mean \"pay\"?"}},
      {{"train", "people.csv", "target=outcome"}, kDataError, {"unknown column \"outcome\"; the columns are age, job"}},
      {{"train", "people.csv", "target=pay", "image_size=32"},
       kUsage,
       {"image_size is an option of image_classification, not of tabular; remove it"}},
      {{"train", "people.csv", "target=pay", "model=cnn"}, kUsage, {"task tabular has no model cnn"}},
      {{"train", "people.csv", "target=pay", "test=dots.csv"}, kDataError, {"set label_strip=."}},
      {{"train", "people.csv", "target=pay", "regression=on"}, kDataError, {"remove regression=on"}},
      {{"train", "people.csv", "target=age", "sampling=balanced"}, kUsage, {"sampling=balanced needs classes", "age"}},
      {{"train", "people.csv", "target=same"}, kDataError, {"only one value"}},
      {{"train", "people.csv", "target=pay", "test=gone.csv"}, kDataError, {"gone.csv"}},
      {{"train", "ragged.csv", "target=a"}, kDataError, {"line 3", "1 field,"}},
      {{"train", "empty.csv", "target=a"}, kDataError, {"is empty"}},
      {{"train", "gone.csv", "target=a"}, kDataError, {"gone.csv"}},
      {{"train", "people.csv", "target=pay", "sep=;"},
       kDataError,
       {"has only one column with sep=;: \"age,job,same,pay\"", "remove sep="}},
      {{"train", "people.csv", "target=pay", "task=tabluar"}, kUsage, {"did you mean \"tabular\"?"}},
  };
  std::vector<Words> commands;
  for (const Case& each : cases) {
    commands.push_back(each.words);
  }
  const auto results = run_all(commands, folder.path());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(results[i].code, cases[i].code) << ::testing::PrintToString(cases[i].words) << results[i].all();
    for (const std::string& text : cases[i].says) {
      EXPECT_THAT(results[i].err, HasSubstr(text)) << ::testing::PrintToString(cases[i].words);
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "runs"));
  EXPECT_EQ(run_stoker(Words{"train", "people.csv", "target=pay", "test=dots.csv", "label_strip=.", "--quiet"} + kShort,
                       folder.path())
                .code,
            kDone);
}

}  // namespace
}  // namespace stoker::testing
