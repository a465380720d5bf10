// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/io/report/downsample.h"
#include "stoker/io/report/metrics_table.h"
#include "support/temp_folder.h"

namespace stoker::io {
namespace {

using ::testing::ElementsAre;
using testing::TempFolder;
using Value = std::optional<double>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Compares a bucket with its values, computed in the simplest way.
void expect_bucket(const ColumnBucket& bucket, const std::vector<Value>& values) {
  std::vector<double> finite;
  std::int64_t not_finite = 0;
  for (const Value& value : values) {
    if (value && std::isfinite(*value)) {
      finite.push_back(*value);
    }
    not_finite += value && !std::isfinite(*value) ? 1 : 0;
  }
  EXPECT_EQ(bucket.not_finite, not_finite);
  EXPECT_EQ(bucket.finite, static_cast<std::int64_t>(finite.size()));
  if (!finite.empty()) {
    EXPECT_EQ(bucket.lowest, *std::ranges::min_element(finite));
    EXPECT_EQ(bucket.highest, *std::ranges::max_element(finite));
  }
  if (not_finite > 0) {
    ASSERT_TRUE(bucket.mean());
    EXPECT_TRUE(std::isnan(*bucket.mean()));
  } else if (finite.empty()) {
    EXPECT_FALSE(bucket.mean());
  } else {
    double sum = 0;
    for (const double value : finite) {
      sum += value;
    }
    EXPECT_NEAR(*bucket.mean(), sum / static_cast<double>(finite.size()), 1e-12);
  }
}

// Compares every bucket with its rows; a bucket has `width` rows.
void expect_all(const Downsample& points, const std::vector<Value>& values, std::size_t width) {
  ASSERT_EQ(points.buckets().size(), (values.size() + width - 1) / width);
  for (std::size_t i = 0; i < points.buckets().size(); ++i) {
    const std::size_t begin = i * width, end = std::min(values.size(), begin + width);
    const RowBucket& bucket = points.buckets()[i];
    EXPECT_EQ(bucket.first_step, static_cast<std::int64_t>(begin) + 1);
    EXPECT_EQ(bucket.last_step, static_cast<std::int64_t>(end));
    EXPECT_EQ(bucket.rows, static_cast<std::int64_t>(end - begin));
    EXPECT_EQ(bucket.time, 0.5 * static_cast<double>(end));
    expect_bucket(bucket.columns[1], std::vector<Value>(values.begin() + static_cast<std::ptrdiff_t>(begin),
                                                        values.begin() + static_cast<std::ptrdiff_t>(end)));
  }
}

TEST(Downsample, EqualsItsSlowTwinAtEveryLength) {
  std::mt19937 generator(4);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (const std::size_t length : {1, 2, 7, 63, 64, 65, 127, 128, 129, 1000, 4096, 5001}) {
    Downsample points(2, 64);
    std::vector<Value> values;
    for (std::size_t i = 0; i < length; ++i) {
      const double draw = uniform(generator);
      values.push_back(draw > 0.98    ? Value(kNan)
                       : draw < -0.98 ? Value(kInfinity)
                       : draw > 0.9   ? Value()
                                      : Value(draw));
      const std::array<Value, 2> row{1.0, values.back()};
      points.add(static_cast<std::int64_t>(i) + 1, 0.5 * static_cast<double>(i + 1), row);
    }
    std::size_t width = 1;
    while ((length + width - 1) / width > 64) {
      width *= 2;
    }
    expect_all(points, values, width);
    points.limit(10);
    while ((length + width - 1) / width > 10) {
      width *= 2;
    }
    expect_all(points, values, width);
  }
}

TEST(Downsample, GoesOnAfterALimitThatLeftHalfABucket) {
  Downsample points(2, 64);
  std::vector<Value> values;
  for (int i = 1; i <= 300; ++i) {
    if (i == 47) {
      points.limit(6);
    }
    values.emplace_back(i);
    const std::array<Value, 2> row{1.0, values.back()};
    points.add(i, 0.5 * i, row);
  }
  expect_all(points, values, 64);
}

constexpr const char* kHeader = "kind,epoch,step,samples,seconds,data_wait,lr,memory_bytes,split,metric,value";

MetricsTable table_of(const std::string& text) {
  const TempFolder folder;
  write_file_atomically(folder.path() / "metrics.csv", text);
  return read_metrics_table(folder.path() / "metrics.csv", 2000);
}

TEST(MetricsTable, ReadsStepsAndEvaluations) {
  std::string text = kHeader;
  text +=
      ",loss,\"grad, \"\"norm\"\"\",skipped\n"
      "step,0,1,32,0.5,0.25,0.001,,,,,2.5,1e-3,0\n"
      "step,0,2,32,0.25,0.05,0.002,1000,,,,nan,inf,1\n"
      "eval,0,2,,0.1,,,,val,\"acc, top/1 \xC3\xA9\",0.75,,,\n"
      "eval,0,2,,0.1,,,,val,loss,,,,\n"
      "step,0,3,32,0.25,0.05,0.003,1000,,,,1.5,,0\n"
      "step,0,4,3";
  const MetricsTable table = table_of(text);
  EXPECT_THAT(table.scalars, ElementsAre("loss", "grad, \"norm\"", "skipped"));
  EXPECT_EQ(table.rows, 3);
  EXPECT_EQ(table.last_step, 3);
  EXPECT_EQ(table.damaged, 0);
  EXPECT_DOUBLE_EQ(table.seconds, 1.0);
  EXPECT_DOUBLE_EQ(table.data_wait, 0.35);
  const auto& rows = table.steps.buckets();
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].columns[MetricsTable::kThroughput].mean(), 64.0);
  EXPECT_FALSE(rows[0].columns[MetricsTable::kMemory].mean());
  EXPECT_EQ(rows[1].columns[MetricsTable::kMemory].mean(), 1000.0);
  EXPECT_EQ(rows[2].columns[MetricsTable::kLr].mean(), 0.003);
  EXPECT_TRUE(std::isnan(*rows[1].columns[MetricsTable::kFirstScalar].mean()));
  EXPECT_FALSE(rows[2].columns[MetricsTable::kFirstScalar + 1].mean());  // absent is not 0
  EXPECT_EQ(table.not_finite.count, 2);
  EXPECT_EQ(table.not_finite.first[0].text, "loss is nan");
  EXPECT_EQ(table.not_finite.first[1].text, "grad, \"norm\" is inf");
  EXPECT_EQ(table.skipped.count, 1);
  EXPECT_EQ(table.skipped.first[0].step, 2);
  ASSERT_EQ(table.evaluated.size(), 2U);
  EXPECT_EQ(table.evaluated[0].metric, "acc, top/1 \xC3\xA9");
  EXPECT_EQ(table.evaluated[0].last, 0.75);
  EXPECT_EQ(table.evaluated[0].points.buckets()[0].time, 0.75);  // seconds of training until then
  EXPECT_FALSE(table.evaluated[1].last);
}

TEST(MetricsTable, FindsColumnsByNameAndCountsWhatItCannotRead) {
  const MetricsTable table = table_of(
      "new,kind,step,lr,split,metric,value,a\xFF\n"
      "x,step,7,0.5,,,,1\n"
      "x,step,8,0.5,,,\n"       // too short
      "x,step,nine,0.5,,,,1\n"  // not a step
      "x,step,9,half,,,,1\n"    // not a number
      "x,step,99999999999999999999,0.5,,,,1\n"
      "x,other,9,,,,,\n");
  EXPECT_THAT(table.scalars, ElementsAre("a\\xff"));
  EXPECT_EQ(table.rows, 1);
  EXPECT_EQ(table.last_step, 7);
  EXPECT_EQ(table.damaged, 4);
  EXPECT_EQ(table.steps.buckets().front().columns[MetricsTable::kLr].mean(), 0.5);
  EXPECT_FALSE(table.steps.buckets().front().columns[MetricsTable::kThroughput].mean());
}

TEST(MetricsTable, OfNoFileAnEmptyFileOrAnotherTableIsEmpty) {
  const TempFolder folder;
  EXPECT_EQ(read_metrics_table(folder.path() / "metrics.csv", 100).rows, 0);
  EXPECT_EQ(table_of("").rows, 0);
  EXPECT_EQ(table_of(fmt::format("{}\n", kHeader)).rows, 0);
  const MetricsTable other = table_of("a,b\n1,2\n3,4\n");
  EXPECT_EQ(other.rows, 0);
  EXPECT_GT(other.damaged, 0);
}

TEST(MetricsTable, KeepsASpikeOfOneStepAmongAHundredThousand) {
  std::string text = fmt::format("{},loss\n", kHeader);
  for (int step = 1; step <= 100'000; ++step) {
    text += fmt::format("step,0,{},1,1,0,1,,,,,{}\n", step, step == 77'777 ? 50.0 : 1.0);
  }
  const MetricsTable table = table_of(text);
  EXPECT_LE(table.steps.buckets().size(), 2000U);
  EXPECT_GE(table.steps.buckets().size(), 1000U);
  int spikes = 0;
  for (const RowBucket& bucket : table.steps.buckets()) {
    const ColumnBucket& loss = bucket.columns[MetricsTable::kFirstScalar];
    const bool here = bucket.first_step <= 77'777 && 77'777 <= bucket.last_step;
    EXPECT_EQ(loss.highest, here ? 50.0 : 1.0);
    EXPECT_EQ(loss.lowest, 1.0);
    spikes += here ? 1 : 0;
  }
  EXPECT_EQ(spikes, 1);
}

}  // namespace
}  // namespace stoker::io
