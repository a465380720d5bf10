// SPDX-License-Identifier: Apache-2.0
// A trained model judged: on one split and on all of them as one set, on no more threads than the quota allows.
#include "stoker/job/split_report.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "stoker/device/cpu_quota.h"
#include "stoker/job/cell_json.h"
#include "stoker/job/job.h"
#include "support/picture_set.h"

namespace stoker::job {
namespace {

using stoker::testing::TempFolder;
using stoker::testing::write_striped_set;
using ::testing::HasSubstr;

TEST(SplitReport, AllSplitsAddUpOnTheQuotasThreads) {
  const TempFolder folder;
  write_striped_set(folder, "data/train/", 6);
  write_striped_set(folder, "data/val/", 3, 100);
  write_striped_set(folder, "data/test/", 2, 200);
  Request request = make_request({}, {"epochs=1", "batch=6", "threads=0", "intra_op=1", "precision=fp32", "model=mlp"});
  request.data = folder / "data";
  request.run = (folder / "run").native();
  Job job = Job::prepare(request, [](const std::string&) {});
  const std::atomic<bool> stop = false;
  job.train({}, stop);

  const int before = at::get_num_threads(), cores = device::cpu_quota().cores;
  at::set_num_threads(cores + 2);  // as torch chooses it where the quota is less than the machine
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

// What an evaluation cannot say (recall of a class without samples) is null: JSON has no NaN.
TEST(SplitReport, CellsAsJson) {
  EXPECT_EQ(cell_json(std::nan("")).dump(), "null");
  EXPECT_EQ(cell_json(std::numeric_limits<double>::infinity()).dump(), "null");
  EXPECT_EQ(cell_json(0.25).dump(), "0.25");
  EXPECT_EQ(cell_json(std::int64_t{7}).dump(), "7");
  EXPECT_EQ(cell_json(std::string("a\xFF\"")).dump(), R"("a\\xff\"")");
  SplitReport report{"test", 1, {{"auc", std::nan(""), true}}, {}};
  EXPECT_THAT(report_json(report), HasSubstr("\"auc\": null"));
}

}  // namespace
}  // namespace stoker::job
