// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/io/report/verdict.h"
#include "support/temp_folder.h"

namespace stoker::io {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::TempFolder;

constexpr const char* kColumns = "kind,epoch,step,samples,seconds,data_wait,lr,memory_bytes,split,metric,value,loss\n";

// A run folder, written by hand.
class Folder {
 public:
  explicit Folder(const std::string& name = "first") : path_(temporary_.path() / name) {
    fs::create_directories(path_ / "artifacts");
    write("plan.json", R"({"format":1,"plan":{"lr":{"value":"0.1","origin":"default","reason":"r"}}})");
  }
  [[nodiscard]] const fs::path& path() const { return path_; }
  void write(const std::string& file, const std::string& text) const { write_file_atomically(path_ / file, text); }
  void steps(int count, const std::string& rest = "") const {
    std::string text = kColumns;
    for (int step = 1; step <= count; ++step) {
      text += fmt::format("step,0,{},32,0.5,0.1,0.01,2097152,,,,{}\n", step, 10.0 - step);
    }
    write("metrics.csv", text + rest);
  }
  void events(const std::string& text) const {
    write("metrics.jsonl", R"({"event":"run_started","title":"t","last_step":8})"
                           "\n" +
                               text);
  }
  void checkpoint(const std::string& info) const {
    fs::create_directories(path_ / "checkpoints" / "best");
    write("checkpoints/best/info.json", info);
  }
  void written_before(std::chrono::seconds age) const {
    for (const char* file : {"plan.json", "metrics.csv", "metrics.jsonl"}) {
      std::error_code error;
      fs::last_write_time(path_ / file, fs::file_time_type::clock::now() - age, error);
    }
  }

 private:
  TempFolder temporary_;
  fs::path path_;
};

json data_of(const std::string& page) {
  constexpr std::string_view kOpen = R"(<script id="data" type="application/json">)";
  const std::size_t begin = page.find(kOpen) + kOpen.size();
  return json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

json run_of(const Folder& folder) { return data_of(report_page({folder.path()}))["runs"][0]; }

TEST(Report, SaysWhatAFinishedRunReached) {
  const Folder folder;
  folder.steps(8);
  folder.checkpoint(R"({"step":6,"task":"image_classification","metric":{"name":"accuracy","value":0.876}})");
  folder.events(R"({"event":"evaluated","step":4,"split":"val","best":true,"metrics":{"loss":0.9,"accuracy":0.5}}
{"event":"evaluated","step":6,"split":"val","best":true,"metrics":{"loss":0.5,"accuracy":0.876}}
{"event":"evaluated","step":8,"split":"val","best":false,"metrics":{"loss":0.7,"accuracy":0.8}}
{"event":"evaluated","step":8,"split":"test","best":false,"metrics":{"loss":0.4,"accuracy":0.892}}
{"event":"run_finished","step":8,"outcome":"done","text":"","seconds":61.6}
)");
  const json run = run_of(folder);
  EXPECT_EQ(run["reached"],
            "Reached validation accuracy 87.6 % at step 6, after 1 min 2 s of training; test accuracy 89.2 %.");
  EXPECT_EQ(run["end"], "Finished: all 8 steps are done.");
  EXPECT_EQ(run["state"], "finished");
  EXPECT_EQ(run["better"]["count"], 2);
  EXPECT_EQ(run["name"], "first");
  EXPECT_EQ(run["commands"][0][0], "stoker eval " + folder.path().native());
}

// The log of a run has only what tensors hold between steps: a step's own peak is often ten times as much.
TEST(Report, CallsOnlyTheRecordedPeakAPeak) {
  const Folder folder;
  folder.steps(2);
  const auto tile = [&] {
    const json run = run_of(folder);
    for (const json& each : run["tiles"]) {
      if (each[0].get<std::string>().find("memory") != std::string::npos) {
        return each;
      }
    }
    return json();
  };
  const json between{"memory between steps", "2.00 MiB", "highest, in tensors"};
  EXPECT_EQ(tile(), between);
  folder.write("artifacts/memory.json", R"({"step":3,"peak":1093743561,"host_peak":1626968064})");
  EXPECT_EQ(tile(), json({"peak memory", "1.02 GiB", "in tensors of step 3; process 1.52 GiB"}));
  folder.write("artifacts/memory.json", R"({"step":3,"peak":1093743561,"host_peak":null})");
  EXPECT_EQ(tile(), json({"peak memory", "1.02 GiB", "in tensors of step 3"}));
  for (const char* damaged : {"", "[]", R"({"step":3,"peak":"much"})", R"({"peak":1})", "{\"step\":3,\"peak\":1"}) {
    folder.write("artifacts/memory.json", damaged);
    EXPECT_EQ(tile(), between) << damaged;
    EXPECT_THAT(run_of(folder)["unread"].dump(), HasSubstr("memory.json")) << damaged;
  }
  const Folder other("other");  // a comparison shows no artifacts, but the tile of the damaged one is another
  const json runs = data_of(report_page({folder.path(), other.path()}))["runs"];
  EXPECT_THAT(runs[0]["unread"].dump(), HasSubstr("memory.json"));
  EXPECT_EQ(runs[1]["unread"].size(), 0U);
}

TEST(Report, SaysHowARunEndedOrHowFarItIs) {
  const Folder folder;
  folder.steps(4);
  folder.checkpoint(R"({"step":4})");
  const auto end = [&](const char* event) {
    folder.events(event);
    folder.written_before(std::chrono::seconds(3));
    return run_of(folder)["end"].get<std::string>();
  };
  EXPECT_THAT(end(""), StartsWith("Still running: step 4 of 8 (50 %), about 2.0 s of training left; last written 3."));
  EXPECT_EQ(end("{\"event\":\"run_finished\",\"step\":4,\"outcome\":\"stopped\"}\n"),
            "Stopped on request at step 4 of 8 (50 %), about 2.0 s of training left.");
  EXPECT_THAT(run_of(folder)["commands"][0][0], StartsWith("stoker resume "));
  EXPECT_EQ(end("{\"event\":\"run_finished\",\"step\":4,\"outcome\":\"failed\",\"text\":\"[x] broke\"}\n"),
            "Failed at step 4 of 8 (50 %). [x] broke.");
  EXPECT_EQ(end("{\"event\":\"run_finished\",\"step\":4,\"outcome\":\"early_stop\"}\n"),
            "Finished early at step 4 of 8 (50 %): validation no longer improved.");
  folder.events("");
  folder.written_before(std::chrono::hours(3));
  EXPECT_THAT(run_of(folder)["end"].get<std::string>(),
              AllOf(StartsWith("Ended unexpectedly at step 4 of 8 (50 %)"), HasSubstr("3 h 0 min")));
  EXPECT_EQ(run_of(folder)["state"], "lost");
}

TEST(Report, OfARunWithoutValidationSpeaksOfItsLoss) {
  const Folder folder;
  folder.steps(8);
  folder.events("");
  EXPECT_EQ(run_of(folder)["reached"], "Training loss went from 9 to 2 in 4.0 s; no validation.");
}

TEST(Report, OfARunThatCrashedAtOnce) {
  const Folder folder;
  folder.steps(1);
  folder.events(
      "{\"event\":\"run_finished\",\"step\":1,\"outcome\":\"failed\",\"text\":\"no memory\",\"seconds\":0.5}\n");
  EXPECT_EQ(run_of(folder)["end"], "Failed at step 1 of 8 (12 %). no memory.");
  const Folder bare;  // not even its files exist
  const json run = run_of(bare);
  EXPECT_EQ(run["reached"], "No step was finished.");
  EXPECT_TRUE(run["steps"]["curves"].empty());
  EXPECT_THAT(run["commands"][0][0].get<std::string>(), StartsWith("stoker train --config"));
}

TEST(Report, ReadsARunThatIsBeingWritten) {
  const Folder folder;
  folder.steps(3, "step,0,4,32,0.5,0.1,0.0");
  folder.events("{\"event\":\"finding\",\"text\":\"f\"}\n{\"event\":\"find");
  folder.write("artifacts/half.json", R"({"kind":"table","rows":[[1)");
  folder.write("artifacts/.hidden.json", "x");
  const std::string page = report_page({folder.path()});
  const json run = data_of(page)["runs"][0];
  EXPECT_EQ(run["steps"]["x"], json({1, 2, 3}));
  EXPECT_EQ(run["findings"], json({"f"}));
  ASSERT_EQ(run["unread"].size(), 1U);
  EXPECT_THAT(run["unread"][0].get<std::string>(), HasSubstr("artifacts/half.json"));
}

TEST(Report, CurvesKeepAbsentAndNotFiniteApart) {
  const Folder folder;
  folder.write("metrics.csv", std::string(kColumns) +
                                  "step,0,1,32,0.5,0.1,0.01,,,,,nan\n"
                                  "step,0,2,32,0.5,0.1,0.01,,,,,\n"
                                  "step,0,3,32,0.5,0.1,0.01,,,,,0.123456789\n");
  const json curves = run_of(folder)["steps"]["curves"];
  EXPECT_EQ(curves[0]["name"], "loss");
  EXPECT_EQ(curves[0]["mean"], json({"nan", nullptr, 0.123457}));
  for (const json& curve : curves) {
    EXPECT_NE(curve["kind"], "memory");  // never measured: must not be shown as 0
  }
}

TEST(Report, NothingCanEndTheScriptElement) {
  const std::string hostile = "</script><img src=x onerror=alert(1)>&amp;<!--";
  const Folder folder;
  folder.steps(2);
  folder.events(json({{"event", "finding"}, {"text", hostile}}).dump() +
                "\n{\"event\":\"finding\",\"text\":\"a\xFF\xC3\"}\n");
  folder.write("artifacts/a.json",
               json({{"kind", "table"}, {"title", hostile}, {"columns", {hostile}}, {"rows", {{hostile}}}}).dump());
  const std::string page = report_page({folder.path()});
  EXPECT_EQ(page.find("<img"), page.npos);
  EXPECT_EQ(page.find("<!--", page.find("<script")), page.npos);
  const json data = data_of(page);
  EXPECT_EQ(data["runs"][0]["findings"], json({hostile, "a\\xff\\xc3"}));
  EXPECT_EQ(data["artifacts"][0]["rows"][0][0], hostile);
}

TEST(Report, ComparesRuns) {
  const Folder first("a"), second("b");
  second.write("plan.json", R"({"plan":{"lr":{"value":"0.3","origin":"command line"},"x":{"value":"1"}}})");
  first.steps(3);
  second.steps(5);
  const json data = data_of(report_page({first.path(), second.path()}));
  EXPECT_EQ(data["runs"].size(), 2U);
  EXPECT_EQ(data["differences"],
            json::parse(R"([{"key":"lr","values":["0.1","0.3"]},{"key":"x","values":[null,"1"]}])"));
  EXPECT_FALSE(data.contains("artifacts"));
}

// Only the program that added a kind of task can open its checkpoints.
TEST(Report, OfAProgramsOwnTaskSendsToThatProgram) {
  const Folder folder;
  folder.steps(4);
  folder.events("");
  folder.write("plan.json", R"({"plan":{"task":{"value":"sine"}}})");
  const auto commands = [&] { return run_of(folder)["commands"]; };
  EXPECT_EQ(commands()[0], json::array({"", "start again with the program that made it: there is no checkpoint"}));
  folder.checkpoint(R"({"step":4,"task":"sine"})");
  ASSERT_EQ(commands().size(), 2U);
  EXPECT_EQ(commands()[0], json::array({"", "resume and evaluate it with the program that made it"}));
  EXPECT_THAT(commands()[1][0].get<std::string>(), StartsWith("stoker report "));
}

TEST(Report, SaysWhatEvalAndPredictGive) {
  const Folder folder;
  folder.steps(8);
  folder.events("{\"event\":\"run_finished\",\"step\":8,\"outcome\":\"done\"}\n");
  folder.checkpoint(R"({"step":8,"task":"tabular"})");
  const auto gives = [&](const char* regression) {
    folder.write("plan.json", fmt::format(R"({{"plan":{{"regression":{{"value":"{}"}}}}}})", regression));
    const json commands = run_of(folder)["commands"];
    return commands[0][1].get<std::string>() + "; " + commands[1][1].get<std::string>();
  };
  EXPECT_EQ(gives("off"), "metrics, also per class; classes and probabilities");
  EXPECT_EQ(gives("on"), "metrics; a number for each row");
}

TEST(Report, QuotesPathsForTheShell) {
  const Folder folder("it's mine");
  folder.steps(1);
  folder.checkpoint("{}");
  EXPECT_THAT(run_of(folder)["commands"][0][0].get<std::string>(), EndsWith("/it'\\''s mine'"));
}

TEST(Report, RefusesWhatIsNotARun) {
  const TempFolder folder;
  try {
    (void)report_page({folder.path()});
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr(folder.path().native()), HasSubstr("is not a run folder")));
  }
  EXPECT_THROW((void)report_page({}), ConfigError);
  EXPECT_THROW((void)report_page({folder.path() / "missing"}), DataError);
}

TEST(Report, IsWrittenIntoItsFolder) {
  const Folder folder;
  folder.steps(2);
  EXPECT_EQ(write_report(folder.path()), folder.path() / "report.html");
  const std::string page = read_text(folder.path() / "report.html");
  EXPECT_THAT(page, StartsWith("<!doctype html>"));
  EXPECT_THAT(page, EndsWith("</html>\n"));
  for (const char* part : {"{{title}}", "{{style}}", "{{library}}", "{{charts}}", "{{program}}", "{{data}}"}) {
    EXPECT_EQ(page.find(part), page.npos) << part;
  }
  EXPECT_THAT(page, HasSubstr("went from 9 to 8"));  // the verdict is in the page even without JavaScript
}

TEST(Report, WordsForFigures) {
  EXPECT_EQ(metric_text("accuracy", 0.87654), "87.7 %");
  EXPECT_EQ(metric_text("top5", 1), "100.0 %");
  EXPECT_EQ(metric_text("loss", 0.876543), "0.8765");
  EXPECT_EQ(metric_text("accuracy", std::nan("")), "nan");
  EXPECT_EQ(spoken_duration(0.04), "0.0 s");
  EXPECT_EQ(spoken_duration(9.96), "10 s");
  EXPECT_EQ(spoken_duration(59.7), "1 min 0 s");
  EXPECT_EQ(spoken_duration(3600 * 3 + 61), "3 h 1 min");
  EXPECT_EQ(spoken_duration(86400 * 3.5), "3 days 12 h");
}

}  // namespace
}  // namespace stoker::io
