// SPDX-License-Identifier: Apache-2.0
// Evaluates a trained model on one split, and on all splits as one set, with no more threads than the quota allows.
#include "stoker/job/split_report.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/data/decode/jpeg_encode.h"
#include "stoker/device/cpu_quota.h"
#include "stoker/job/cell_json.h"
#include "stoker/job/job.h"
#include "support/image_set.h"

namespace stoker::job {
namespace {

using stoker::testing::TempFolder;
using stoker::testing::write_striped_set;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(SplitReport, AllSplitsAddUpOnTheQuotasThreads) {
  const TempFolder folder;
  write_striped_set(folder, "data/train/", 6);
  write_striped_set(folder, "data/val/", 3, 100);
  write_striped_set(folder, "data/test/", 2, 200);
  Request request =
      make_request({}, {"device=cpu", "epochs=1", "batch=6", "threads=0", "intra_op=1", "precision=fp32", "model=mlp"});
  request.data = folder / "data";
  request.run = (folder / "run").native();
  Job job = Job::prepare(request, [](const std::string&) {});
  const std::atomic<bool> stop = false;
  job.train({}, stop);

  const int before = at::get_num_threads(), cores = device::cpu_quota().cores;
  at::set_num_threads(cores + 2);  // torch chooses too many where the quota is below the machine's cores
  LoadedModel loaded = open_model(folder / "run", "cpu");
  EXPECT_EQ(at::get_num_threads(), cores);
  at::set_num_threads(before);

  const auto data = open_for(loaded, folder / "data");
  double right = 0;
  for (const char* split : {"train", "val", "test"}) {
    const SplitReport report = evaluate_split(loaded, *data, split, 4);
    right += report.metrics.front().value * static_cast<double>(report.samples);
  }
  const SplitReport all = evaluate_split(loaded, *data, "all", 4);
  EXPECT_EQ(all.samples, 33);
  EXPECT_NEAR(all.metrics.front().value, right / 33, 1e-12);
  ASSERT_EQ(all.tables.size(), 1U);
  const tasks::Table& classes = all.tables.front();
  EXPECT_EQ(classes.rows.size(), 3U);
  for (const auto& row : classes.rows) {
    EXPECT_EQ(std::get<std::int64_t>(row.at(1)), 11) << std::get<std::string>(row.front());
  }
  EXPECT_THAT(report_table(all), HasSubstr("mostly taken for"));
  EXPECT_THAT(report_json(all), HasSubstr("\"mostly_taken_for\""));
}

TEST(SplitReport, OtherDataThanTheRunsIsNotCut) {
  const TempFolder folder;
  write_striped_set(folder, "data/", 8);  // val is split off from it
  write_striped_set(folder, "other/", 4, 100);
  write_striped_set(folder, "parted/train/", 4, 100);
  write_striped_set(folder, "parted/test/", 2, 200);
  Request request =
      make_request({}, {"device=cpu", "epochs=1", "batch=6", "threads=0", "intra_op=1", "precision=fp32", "model=mlp"});
  request.data = folder / "data";
  request.run = (folder / "run").native();
  const std::atomic<bool> stop = false;
  Job::prepare(request, [](const std::string&) {}).train({}, stop);
  const auto evaluated = [&](const char* data, const char* split = "") {
    const SplitReport report = evaluate_run(folder / "run", data[0] == 0 ? "" : folder / data, split, "", "cpu");
    return report.split + " " + std::to_string(report.samples);
  };
  const std::string own = evaluated("");
  EXPECT_THAT(own, ::testing::StartsWith("val "));
  EXPECT_EQ(evaluated("data"), own);
  std::filesystem::copy(folder / "data", folder / "moved", std::filesystem::copy_options::recursive);
  EXPECT_EQ(evaluated("moved"), own) << "the run's data, moved: training samples must not count";
  EXPECT_EQ(evaluated("other"), "all 12");
  EXPECT_EQ(evaluated("other", "train"), "train 12");
  EXPECT_THROW((void)evaluated("other", "val"), DataError);
  EXPECT_EQ(evaluated("parted"), "test 6");
}

// The run's own rules decide how many images may be bad, also when its model is evaluated.
TEST(SplitReport, BadImagesAreEvaluatedByTheRunsRules) {
  const TempFolder folder;
  write_striped_set(folder, "data/train/", 6);
  write_striped_set(folder, "data/val/", 3, 100);
  write_striped_set(folder, "data/test/", 2, 200);
  for (const char* name : {"across/bad.png", "down/bad.png", "plain/bad.png"}) {
    folder.write(std::filesystem::path("data/test") / name, "no image");
  }
  const auto run_with = [&](const std::string& name, std::vector<std::string> words) {
    words.insert(words.end(), {"device=cpu", "epochs=1", "batch=6", "threads=0", "intra_op=1", "precision=fp32",
                               "model=mlp", "bad_budget=0.5"});
    Request request = make_request({}, words);
    request.data = folder / "data";
    request.run = (folder / name).native();
    const std::atomic<bool> stop = false;
    Job::prepare(request, [](const std::string&) {}).train({}, stop);
    return folder / name;
  };
  for (const std::string on_bad : {"replace", "skip"}) {
    const SplitReport report = evaluate_run(run_with(on_bad, {"on_bad=" + on_bad}), {}, "test", "best", "cpu");
    std::int64_t evaluated = 0;
    for (const auto& row : report.tables.front().rows) {
      evaluated += std::get<std::int64_t>(row.at(1));
    }
    EXPECT_EQ(evaluated, 6);
    EXPECT_EQ(report.samples, 6);
    ASSERT_EQ(report.bad.size(), 3U);
    EXPECT_THAT(report_table(report), AllOf(HasSubstr("test split, 6 samples\n  not evaluated: "),
                                            HasSubstr("test/down/bad.png: "), HasSubstr("test/plain/bad.png: ")));
    const auto json = nlohmann::json::parse(report_json(report));
    EXPECT_EQ(json["samples"], 6);
    ASSERT_EQ(json["not_evaluated"].size(), 3U);
    EXPECT_THAT(json["not_evaluated"][0]["name"].get<std::string>(), HasSubstr("test/across/bad.png"));
    EXPECT_FALSE(json["not_evaluated"][0]["reason"].get<std::string>().empty());
  }
  SplitReport many;
  many.split = "test";
  many.samples = 1;
  many.bad.resize(12);
  EXPECT_THAT(report_table(many), AllOf(HasSubstr("test split, 1 sample\n"), HasSubstr("and 2 more")));

  // A truncated image is accepted by a run with strict=false.
  const auto jpeg = data::encode_jpeg(stoker::testing::computed_image(40, 40, 3).view(), 90);
  folder.write("data/test/down/bad.png", std::string(reinterpret_cast<const char*>(jpeg.data()), jpeg.size() * 3 / 4));
  for (const bool strict : {true, false}) {
    const auto run = run_with(strict ? "strict" : "lenient", {strict ? "strict=true" : "strict=false"});
    EXPECT_EQ(evaluate_run(run, {}, "test", "best", "cpu").samples, strict ? 6 : 7);
  }
  std::filesystem::remove(folder / "replace/plan.json");
  std::filesystem::remove(folder / "replace/config.toml");
  EXPECT_THROW((void)evaluate_run(folder / "replace", folder / "data", "test", "best", "cpu"), DataError);
}

// A value that does not exist, such as the recall of a class without samples, is null: JSON has no NaN.
TEST(SplitReport, CellsAsJson) {
  EXPECT_EQ(cell_json(std::nan("")).dump(), "null");
  EXPECT_EQ(cell_json(std::numeric_limits<double>::infinity()).dump(), "null");
  EXPECT_EQ(cell_json(0.25).dump(), "0.25");
  EXPECT_EQ(cell_json(std::int64_t{7}).dump(), "7");
  EXPECT_EQ(cell_json(std::string("a\xFF\"")).dump(), R"("a\\xff\"")");
  SplitReport report;
  report.metrics = {{"auc", std::nan(""), true}};
  EXPECT_THAT(report_json(report), HasSubstr("\"auc\": null"));
}

}  // namespace
}  // namespace stoker::job
