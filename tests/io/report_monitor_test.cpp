// SPDX-License-Identifier: Apache-2.0
// The monitor's records as charts of a report: their axis over a resume, what is missing, and records that are damaged.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "stoker/base/fmt.h"
#include "stoker/io/report/monitor_charts.h"
#include "stoker/io/report/monitor_log.h"

namespace stoker::io {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;

Json record(double time, int step, Json figures, double seconds = 1) {
  return {{"event", "monitor"}, {"time", time}, {"step", step}, {"seconds", seconds}, {"figures", std::move(figures)}};
}

const Json& chart(const Json& json, const std::string& title) {
  for (const Json& each : json["charts"]) {
    if (each["title"] == title) {
      return each;
    }
  }
  throw std::runtime_error("no chart " + title + " in " + json.dump());
}

TEST(MonitorLog, NoRecordsNoCharts) {
  EXPECT_TRUE(MonitorLog().json().is_null());
  MonitorLog log;
  log.mark("evaluation", 3);
  EXPECT_TRUE(log.json().is_null());
}

TEST(MonitorLog, TimeBeginsAtTheRunAndLeavesOutAStop) {
  MonitorLog log;
  log.add(record(1000, 10, {{"process.cpu_cores", 1.5}}));
  log.add(record(1001.5, 20, {{"process.cpu_cores", 2}, {"machine.busy_cores", 3}}));
  log.mark("evaluation", 20);
  log.mark("evaluation", 20);  // another split of the same step
  log.mark("checkpoint", 21);
  log.mark("checkpoint", 99);                                 // after the last record
  log.add(record(90000, 30, {{"process.cpu_cores", 1}}, 2));  // resumed on another day
  const Json json = log.json();
  EXPECT_EQ(json["t"], Json({1, 2.5, 4.5}));
  EXPECT_EQ(json["x"], Json({10, 20, 30}));
  const Json& cores = chart(json, "cores in use");
  EXPECT_EQ(cores["unit"], "cores");
  ASSERT_EQ(cores["lines"].size(), 2U);  // no quota: no line
  EXPECT_EQ(cores["lines"][0]["label"], "this run");
  EXPECT_EQ(cores["lines"][0]["mean"], Json({1.5, 2, 1}));
  EXPECT_EQ(cores["lines"][1]["mean"], Json({nullptr, 3, nullptr})) << "missing, not 0";
  EXPECT_EQ(json["marks"],
            Json::parse(R"([{"kind":"evaluation","t":2.5,"x":20},{"kind":"checkpoint","t":4.5,"x":21}])"));
}

TEST(MonitorLog, DamagedRecordsAreLeftOut) {
  MonitorLog log;
  log.add(Json::object());
  log.add({{"time", "x"}, {"seconds", 1}, {"step", 1}, {"figures", Json::object()}});
  log.add({{"time", 1}, {"seconds", 1}, {"step", 1}, {"figures", Json::array({1})}});
  log.add({{"time", 1}, {"seconds", -1}, {"step", 1}, {"figures", Json::object()}});
  EXPECT_TRUE(log.json().is_null());
  log.add(record(1, 1, {{"process.cpu_cores", "many"}, {"process.resident_bytes", 12}}));
  EXPECT_EQ(log.json()["charts"].size(), 1U);
}

TEST(MonitorLog, ADayOfRecordsFitsAPage) {
  MonitorLog log;
  for (int i = 0; i < 20'000; ++i) {
    Json figures = {{"process.cpu_cores", i % 3}};
    for (int group = 0; group < 40; ++group) {
      figures[fmt::format("threads.group{}x.cpu_cores", group)] = 0.01 * group;
    }
    log.add(record(i, i, figures));
    log.mark("evaluation", i);
  }
  const Json json = log.json();
  EXPECT_LT(json.dump().size(), 200'000U);
  EXPECT_LE(json["marks"].size(), 200U);
  const Json& groups = chart(json, "cores by kind of thread");
  ASSERT_EQ(groups["lines"].size(), 6U);
  EXPECT_EQ(groups["lines"][0]["label"], "group39x");  // the busiest first
}

TEST(MonitorCharts, EachGpuHasItsOwn) {
  const auto charts = monitor_charts({"gpu0.busy_share", "gpu1.busy_share", "gpu1.power_watts", "other"},
                                     [](const std::string&) { return 1.0; });
  std::vector<std::string> titles;
  for (const MonitorChart& each : charts) {
    titles.push_back(each.title);
  }
  EXPECT_THAT(titles, ElementsAre("gpu0: busy", "gpu1: busy", "gpu1: power"));
}

}  // namespace
}  // namespace stoker::io
