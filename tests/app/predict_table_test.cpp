// SPDX-License-Identifier: Apache-2.0
// Predictions for the rows of tables: eval's metrics recomputed from the predictions, rows that training never saw, and
// files that are refused.
#include <cmath>
#include <map>
#include <sstream>

#include "app/people_table.h"
#include "app/trained_run.h"
#include "stoker/base/fmt.h"

namespace stoker::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The cells of a CSV without quoted commas.
std::vector<Words> cells_of(const std::string& csv) {
  std::vector<Words> rows;
  for (const std::string& line : lines_of(csv)) {
    Words cells;
    std::istringstream in(line);
    for (std::string cell; std::getline(in, cell, ',');) {
      cells.push_back(cell);
    }
    rows.push_back(cells);
  }
  return rows;
}

double metric(const std::string& eval_json, const char* name) {
  return nlohmann::json::parse(eval_json).at("metrics").at(name).get<double>();
}

// One run on people(), made by the first test that needs it.
const TempFolder& classes_run() {
  static const TempFolder folder;
  if (!fs::exists(folder / "runs")) {
    folder.write("people.csv", people());
    const Finished done =
        run_stoker(Words{"train", "people.csv", "target=pay", "run=pay", "--quiet"} + kShort, folder.path());
    EXPECT_EQ(done.code, kDone) << done.all();
  }
  return folder;
}

TEST(PredictTable, ClassesGiveEvalsAccuracy) {
  const TempFolder& folder = classes_run();
  const auto results = run_all({{"predict", "runs/pay", "people.csv", "--out", "predictions.csv"},
                                {"eval", "runs/pay", "--split", "all", "--json"},
                                {"predict", "runs/pay", "people.csv", "--top", "1", "--format", "json"}},
                               folder.path());
  ASSERT_EQ(results[0].code, kDone) << results[0].all();
  const auto rows = cells_of(read_bytes(folder / "predictions.csv"));
  ASSERT_EQ(rows.size(), 1U + 2 * 240);
  EXPECT_EQ(rows[0], (Words{"file", "row", "rank", "label", "probability"}));
  const Words truth = lines_of(people());
  int right = 0;
  for (std::size_t row = 1; row <= 240; ++row) {
    const Words &first = rows[2 * row - 1], &second = rows[2 * row];
    ASSERT_EQ(first.at(0), "people.csv");
    ASSERT_EQ(first.at(1), std::to_string(row));
    ASSERT_EQ(first.at(2) + second.at(2), "12");
    EXPECT_GE(std::stod(first.at(4)), std::stod(second.at(4)));
    EXPECT_NEAR(std::stod(first.at(4)) + std::stod(second.at(4)), 1, 2e-6);
    right += truth[row].ends_with("," + first.at(3)) ? 1 : 0;
  }
  EXPECT_NEAR(right / 240.0, metric(results[1].out, "accuracy"), 1e-9);
  const Words json = lines_of(results[2].out);
  ASSERT_EQ(json.size(), 240U);
  const auto last = nlohmann::json::parse(json[239]);
  EXPECT_EQ(last.at("row"), 240);
  EXPECT_EQ(last.at("guesses").at(0).at("label"), rows[479].at(3));
}

// eval uses the rows that split.csv lists: the size and accuracy of each split follow from that file alone.
TEST(PredictTable, TheSplitFileTellsEvalsRows) {
  const TempFolder& folder = classes_run();
  const auto rows = cells_of(read_bytes(folder / "runs/pay/artifacts/split.csv"));
  ASSERT_EQ(rows.size(), 241U);
  EXPECT_EQ(rows[0], (Words{"row", "split"}));
  const Words truth = lines_of(people());
  const auto guesses = cells_of(run_stoker({"predict", "runs/pay", "people.csv", "--top", "1"}, folder.path()).out);
  ASSERT_EQ(guesses.size(), 241U);
  std::map<std::string, int> samples, right;
  for (std::size_t row = 1; row <= 240; ++row) {
    ASSERT_EQ(rows[row].at(0), std::to_string(row));
    ++samples[rows[row].at(1)];
    right[rows[row].at(1)] += truth[row].ends_with("," + guesses[row].at(3)) ? 1 : 0;
  }
  ASSERT_EQ(samples.size(), 3U);
  for (const auto& [split, count] : samples) {
    const Finished eval = run_stoker({"eval", "runs/pay", "--split", split, "--json"}, folder.path());
    ASSERT_EQ(eval.code, kDone) << split << eval.all();
    EXPECT_EQ(nlohmann::json::parse(eval.out).at("samples"), count) << split;
    EXPECT_NEAR(right[split] / static_cast<double>(count), metric(eval.out, "accuracy"), 1e-9) << split;
  }
}

TEST(PredictTable, NumbersAreInTheTargetsUnit) {
  const TempFolder folder;
  std::string text = "size\tcity\tprice\n";
  for (int i = 0; i < 200; ++i) {
    const double size = 20 + i * 37 % 100;
    text += fmt::format("{}\t{}\t{}\n", size, i % 2 == 0 ? "north" : "south", 1000 * size + 20'000 * (i % 2) + 0.5);
  }
  folder.write("homes.tsv", text);
  ASSERT_EQ(
      run_stoker(Words{"train", "homes.tsv", "target=price", "run=price", "--quiet"} + kShort, folder.path()).code,
      kDone);
  const auto results = run_all(
      {{"predict", "runs/price", "homes.tsv"}, {"eval", "runs/price", "--split", "all", "--json"}}, folder.path());
  ASSERT_EQ(results[0].code, kDone) << results[0].all();
  const auto rows = cells_of(results[0].out);
  ASSERT_EQ(rows.size(), 201U);
  EXPECT_EQ(rows[0], (Words{"file", "row", "value"}));
  const Words truth = lines_of(text);
  double squares = 0;
  for (std::size_t row = 1; row <= 200; ++row) {
    const double off = std::stod(rows[row].at(2)) - std::stod(truth[row].substr(truth[row].rfind('\t') + 1));
    squares += off * off;
  }
  const double rmse = metric(results[1].out, "rmse");
  EXPECT_NEAR(std::sqrt(squares / 200), rmse, 1e-3 * rmse);  // eval's model and arithmetic are float32
}

TEST(PredictTable, RowsThatTrainingNeverSaw) {
  const TempFolder& folder = classes_run();
  folder.write("new/no_target.csv", "job,age,extra\nsmith,70,1\nclerk,19,2\nbaker,?,3\n");
  folder.write("new/again.csv", "age,job\n70,smith\n");
  const Finished done =
      run_stoker({"predict", "runs/pay", "new/no_target.csv", "new/again.csv", "--top", "1"}, folder.path());
  ASSERT_EQ(done.code, kDone) << done.all();
  EXPECT_THAT(done.err,
              AllOf(HasSubstr("new/no_target.csv"), HasSubstr("column \"job\" has 1 value"), HasSubstr("baker")));
  const auto rows = cells_of(done.out);
  ASSERT_EQ(rows.size(), 5U) << done.out;
  EXPECT_EQ(rows[1].at(3), ">50K");
  EXPECT_EQ(rows[2].at(3), "<=50K");
  EXPECT_EQ(rows[4].at(0), "new/again.csv");
  EXPECT_EQ(rows[4].at(1), "1");
  EXPECT_EQ(rows[4].at(4), rows[1].at(4));  // the same row with its columns in another order
}

TEST(PredictTable, RefusesOtherTables) {
  const TempFolder& folder = classes_run();
  folder.write("bad/missing.csv", "age,same\n70,1\n");
  folder.write("bad/ragged.csv", "age,job\n70,smith\n70\n");
  folder.write("bad/words.csv", "age,job\nold,smith\n");
  folder.write("bad/empty.csv", "");
  folder.write("bad/image.png", small_png(1));
  const std::vector<std::pair<std::string, Words>> cases = {
      {"bad/missing.csv", {"bad/missing.csv", "unknown column \"job\""}},
      {"bad/ragged.csv", {"bad/ragged.csv, line 3", "1 field,"}},
      {"bad/words.csv", {"bad/words.csv", "had numbers in training", "old"}},
      {"bad/empty.csv", {"bad/empty.csv", "is empty"}},
      {"bad/image.png", {"bad/image.png", "is not a table"}},
      {"bad", {"bad", "is not a regular file"}},
      {"gone.csv", {"gone.csv"}},
  };
  std::vector<Words> commands;
  for (const auto& [file, says] : cases) {
    commands.push_back({"predict", "runs/pay", file, "--out", "none.csv"});
  }
  const auto results = run_all(commands, folder.path());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(results[i].code, kDataError) << cases[i].first << results[i].all();
    for (const std::string& text : cases[i].second) {
      EXPECT_THAT(results[i].err, HasSubstr(text)) << cases[i].first;
    }
  }
  EXPECT_FALSE(fs::exists(folder / "none.csv"));
  const Finished image_model = run_stoker({"predict", trained_run().run(), folder / "people.csv"}, folder.path());
  EXPECT_EQ(image_model.code, kDataError);
  EXPECT_THAT(image_model.err, HasSubstr("is not an image (it begins with \"age,job"));
}

// A file without a header is read like the training file, wherever the checkpoint is.
TEST(PredictTable, TheModelKnowsHowItsTablesAreRead) {
  const TempFolder folder;
  const std::string table = people().substr(people().find('\n') + 1);
  folder.write("plain.csv", table);
  ASSERT_EQ(
      run_stoker(Words{"train", "plain.csv", "target=4", "header=off", "run=plain", "--quiet"} + kShort, folder.path())
          .code,
      kDone);
  fs::copy(folder / "runs/plain/checkpoints/best", folder / "alone", fs::copy_options::recursive);
  const Finished done = run_stoker({"predict", "alone", "plain.csv", "--top", "1"}, folder.path());
  ASSERT_EQ(done.code, kDone) << done.all();
  EXPECT_EQ(lines_of(done.out).size(), 241U);
}

}  // namespace
}  // namespace stoker::testing
