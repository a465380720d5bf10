// SPDX-License-Identifier: Apache-2.0
// A folder is measured in every way, with its stages. Images that a run would keep are decoded again in each epoch.
#include "stoker/study/data_bench/data_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "stoker/base/error.h"
#include "stoker/device/cpu_quota.h"
#include "support/images.h"
#include "support/temp_folder.h"

namespace stoker::study {
namespace {

using ::testing::HasSubstr;
using testing::TempFolder;

class DataBenchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < kImages; ++i) {
      data_.write(fmt::format("{}/{}.png", i % 2 == 0 ? "a" : "b", i), testing::small_png(i, 160, 120));
    }
    options_.request = job::make_request({}, {"data=" + data_.path().native(), "device=cpu", "batch=8", "val=0"});
    options_.seconds = 0.05;
  }
  static constexpr int kImages = 24;  // three batches, fewer than the warm-up before the measurement
  TempFolder data_;
  DataBenchOptions options_;
};

TEST_F(DataBenchTest, MeasuresEveryWay) {
  const DataBench bench = bench_data(options_);
  EXPECT_EQ(bench.samples, kImages);
  EXPECT_EQ(bench.batch, 8);
  ASSERT_GE(bench.ways.size(), 2U);
  EXPECT_EQ(bench.ways.front().threads, 1);
  EXPECT_THAT(bench.ways.back().name, HasSubstr("auto: "));
  for (const DataWay& way : bench.ways) {
    EXPECT_GT(way.rate, 0) << way.name;
    std::map<std::string, double> seconds;
    for (const core::StageFigures& stage : way.spent.stages) {
      seconds[stage.name] = stage.seconds;
    }
    // If images were kept, all of them would have been read and decoded before the measurement.
    for (const char* stage : {"open", "read", "PNG decode", "resize"}) {
      EXPECT_GT(seconds[stage], 0) << way.name << ": " << stage;
    }
  }
  const auto json = nlohmann::json::parse(data_bench_json(bench));
  EXPECT_EQ(json["ways"].size(), bench.ways.size());
  EXPECT_EQ(json["batch"], 8);
  const std::string text = data_bench_text(bench);
  EXPECT_THAT(text, HasSubstr("PNG decode"));
  EXPECT_THAT(text, HasSubstr("waits for data on this machine"));
}

TEST_F(DataBenchTest, MeasuresTheThreadsThatAreAskedFor) {
  const auto threads = [&](const std::string& words) {
    options_.request = job::make_request(
        {}, {"data=" + data_.path().native(), "device=cpu", "batch=8", "val=0", "intra_op=1", "threads=" + words});
    std::set<int> measured;
    for (const DataWay& way : bench_data(options_).ways) {
      measured.insert(way.name.starts_with("auto") ? 0 : way.threads);
    }
    return measured;
  };
  const int cores = device::cpu_quota().cores;
  EXPECT_EQ(threads(std::to_string(cores + 1)), (std::set{0, 1, cores, cores + 1}));
  EXPECT_EQ(threads("1"), (std::set{0, 1, cores}));
  EXPECT_EQ(threads("auto"), (std::set{0, 1, cores}));
}

TEST_F(DataBenchTest, AStopEndsItWithWhatThereIs) {
  options_.stop = [] { return true; };
  const DataBench bench = bench_data(options_);
  EXPECT_TRUE(bench.stopped);
  EXPECT_THAT(data_bench_text(bench), HasSubstr("Stopped before"));
}

// Stopped within the first batches of a way, which is then not reported.
TEST_F(DataBenchTest, AStopBeforeTheFirstBatchGivesNoFigure) {
  options_.stop = [asked = 0]() mutable { return ++asked > 1; };
  const DataBench bench = bench_data(options_);
  EXPECT_TRUE(bench.stopped);
  EXPECT_THAT(bench.ways, ::testing::IsEmpty());
  EXPECT_THAT(data_bench_text(bench), HasSubstr("Stopped before"));
}

TEST_F(DataBenchTest, NoDataIsAnError) {
  options_.request.data = data_ / "nothing";
  EXPECT_THROW((void)bench_data(options_), DataError);
}

}  // namespace
}  // namespace stoker::study
