// SPDX-License-Identifier: Apache-2.0
// Evaluates a trained model on one split, and on all splits as one set, with no more threads than the quota allows; and
// what cannot be read is named.
#include "stoker/job/split_report.h"

#include <ATen/Parallel.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/decode/jpeg_encode.h"
#include "stoker/device/cpu_quota.h"
#include "stoker/io/checkpoint/store.h"
#include "stoker/job/cell_json.h"
#include "stoker/job/info.h"
#include "stoker/job/job.h"
#include "stoker/tasks/own_task.h"
#include "support/image_set.h"
#include "support/job_runs.h"
#include "support/toy_trainable.h"

namespace stoker::job {
namespace {

using stoker::testing::complaint;
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

// Its metric is the mean output, which is different for all samples.
class MeanOutput final : public stoker::testing::ToyTrainable {
 public:
  MeanOutput() : ToyTrainable(at::kFloat) {}
  [[nodiscard]] std::vector<core::NamedTensor> evaluate(const core::TensorList& outputs,
                                                        const core::Batch&) const override {
    return {{"sum", outputs[0].sum().to(at::kDouble)}, {"count", at::scalar_tensor(outputs[0].numel(), at::kLong)}};
  }
  [[nodiscard]] std::vector<core::MetricValue> metrics(const std::vector<core::NamedTensor>& totals) const override {
    return {{"mean", totals[0].tensor.item<double>() / totals[1].tensor.item<double>(), true}};
  }
};

// A run of a program's own task whose samples are drawn by the run's seed, 7.
std::filesystem::path drawn_run(const TempFolder& folder, const std::string& name) {
  static const bool added = [] {
    tasks::OwnTask own{.name = "drawn", .model = [](std::uint64_t) { return std::make_unique<MeanOutput>(); }};
    own.sample = [](tasks::Split, std::int64_t, CounterRng random) {
      std::vector<double> x(6);
      std::ranges::generate(x, [&] { return random.uniform(-1, 1); });
      return std::vector<core::NamedTensor>{{"x", at::tensor(x, at::kFloat)},
                                            {"y", at::scalar_tensor(random.below(4), at::kLong)},
                                            {"mask", at::ones({4})}};
    };
    own.train_samples = own.val_samples = 8;
    tasks::add_own_task(std::move(own));
    return true;
  }();
  EXPECT_TRUE(added);
  Request request = make_request({}, {"task=drawn", "data=none", "device=cpu", "batch=8", "precision=fp32",
                                      "intra_op=1", "threads=0", "epochs=1", "seed=7"});
  request.run = (folder / name).native();
  const std::atomic<bool> never = false;
  Job::prepare(request, [](const std::string&) {}).train({}, never);
  return folder / name;
}

TEST(SplitReport, SamplesAreDrawnByTheRunsSeed) {
  const TempFolder folder;
  const auto run = drawn_run(folder, "run");
  LoadedModel loaded = load_model(run, at::kCPU, "last");
  const double of_run = loaded.card.metric_value;
  EXPECT_NEAR(evaluate_run(run, {}, "val", "last", "cpu").metrics.front().value, of_run, 1e-6);
  const double of_other_seed = evaluate_split(loaded, *open_for(loaded, "none"), "val", 8, 8).metrics.front().value;
  EXPECT_GT(std::abs(of_other_seed - of_run), 1e-4) << "the metric must depend on the seed, or this test is useless";
}

TEST(SplitReport, AProgramKeepsItsNumberOfThreads) {
  const TempFolder folder;
  const auto run = drawn_run(folder, "run");
  const int before = at::get_num_threads(), many = device::cpu_quota().cores + 2;
  at::set_num_threads(many);
  (void)evaluate_run(run, {}, "val", "last", "cpu");
  EXPECT_EQ(at::get_num_threads(), many);
  at::set_num_threads(before);
}

TEST(SplitReport, WhatCannotBeReadIsNamed) {
  const TempFolder folder;
  const auto run = drawn_run(folder, "damaged");
  (void)drawn_run(folder, "whole");
  const auto evaluate = [&] { (void)evaluate_run(run, {}, "val", "last", "cpu"); };
  const std::string plan = read_text(run / "plan.json");
  write_file_atomically(run / "plan.json", "{}");
  EXPECT_THAT(complaint(evaluate), HasSubstr("damaged/plan.json"));
  EXPECT_THAT(complaint([&] { (void)info_text(run); }), HasSubstr("damaged/plan.json"));
  write_file_atomically(run / "plan.json", plan);

  io::CheckpointStore store(run / "checkpoints");
  io::Checkpoint last = store.load("last");
  last.weights = {{"other", at::ones({2})}};
  store.save("last", last);
  EXPECT_THAT(complaint(evaluate), AllOf(HasSubstr("damaged/checkpoints/last"), HasSubstr("no weights fit")));

  write_file_atomically(run / "checkpoints/last/manifest.json", "{}");
  const std::string runs = info_text(folder.path());
  EXPECT_THAT(runs, HasSubstr("damaged/checkpoints/last/manifest.json"));
  EXPECT_THAT(runs, HasSubstr("whole: drawn at step 1 (epoch 1)\n"));
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
