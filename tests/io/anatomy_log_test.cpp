// SPDX-License-Identifier: Apache-2.0
// The records of time in a run's log, as the report reads them: sums, bounded memory, and damaged records.
#include "stoker/io/report/anatomy_log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace stoker::io {
namespace {

using Json = nlohmann::ordered_json;

Json period(int step, double fetch, double forward, int steps = 10) {
  return {{"event", "anatomy"},
          {"step", step},
          {"steps", steps},
          {"seconds", fetch + forward},
          {"phases",
           {{{"name", "fetch"}, {"seconds", fetch}, {"cpu_seconds", fetch / 4}},
            {{"name", "forward"}, {"seconds", forward}}}},
          {"marks", {{{"name", "mine"}, {"seconds", forward / 2}}}}};
}

TEST(AnatomyLog, SumsPeriodsAndTakesQuantilesFromTheWhole) {
  AnatomyLog log;
  EXPECT_TRUE(log.json().is_null());
  log.add(period(10, 0.5, 1.5));
  log.add(period(20, 1.5, 0.5));
  Json whole = period(20, 2, 2, 20);
  whole["whole"] = true;
  whole["p50"] = 0.125;
  whole["slowest"] = 1;
  whole["phases"][1]["p50"] = 0.0625;
  log.add(whole);
  const Json json = log.json();
  EXPECT_EQ(json["seconds"], 4.0) << "the whole repeats the periods";
  EXPECT_EQ(json["steps"], 20);
  EXPECT_EQ(json["p50"], 0.125);
  EXPECT_TRUE(json["p99"].is_null());
  EXPECT_EQ(json["phases"][0], Json({{"name", "fetch"},
                                     {"seconds", 2.0},
                                     {"cpu", 0.5},
                                     {"device", nullptr},
                                     {"p50", nullptr},
                                     {"p99", nullptr}}));
  EXPECT_EQ(json["phases"][1]["p50"], 0.0625);
  EXPECT_TRUE(json["phases"][1]["cpu"].is_null()) << "missing, not 0";
  EXPECT_EQ(json["marks"], Json::parse(R"([["mine",1.0]])"));
  EXPECT_EQ(json["periods"], Json::parse(R"({"x":[10,20],"steps":[10,10],"by":[[0.5,1.5],[1.5,0.5]]})"));
}

TEST(AnatomyLog, ALongRunIsMerged) {
  AnatomyLog log;
  for (int i = 1; i <= 1000; ++i) {
    log.add(period(10 * i, i <= 500 ? 1 : 3, 1));
  }
  const Json json = log.json();
  const Json& fetch = json["periods"]["by"][0];
  EXPECT_LE(fetch.size(), AnatomyLog::kMostPeriods);
  EXPECT_GE(fetch.size(), AnatomyLog::kMostPeriods / 2);
  EXPECT_EQ(json["periods"]["x"].back(), 10'000);
  double sum = 0;
  for (std::size_t i = 0; i < fetch.size(); ++i) {
    sum += fetch[i].get<double>();
    const double each = fetch[i].get<double>() / json["periods"]["steps"][i].get<double>();
    EXPECT_TRUE(i == fetch.size() / 2 || each == (i < fetch.size() / 2 ? 0.1 : 0.3)) << i << ": equal parts of the run";
  }
  EXPECT_EQ(sum, 2000);
}

TEST(AnatomyLog, KeepsTheSlowestSteps) {
  AnatomyLog log;
  log.add(period(1000, 1, 1));
  for (int step = 1; step <= 100; ++step) {
    log.add({{"event", "slow_step"},
             {"step", step},
             {"seconds", step % 50},
             {"usual_seconds", 0.5},
             {"phase", "fetch"},
             {"cause", "c"}});
  }
  const Json json = log.json();
  EXPECT_EQ(json["slow_steps"], 100);
  ASSERT_EQ(json["slow"].size(), AnatomyLog::kMostSlow);
  EXPECT_EQ(json["slow"][0], Json::parse(R"([49,49.0,0.5,"fetch","c"])"));
  EXPECT_EQ(json["slow"][1][0], 99);
}

TEST(AnatomyLog, DamagedRecordsChangeNothing) {
  AnatomyLog log;
  for (const char* text :
       {R"({"event":"anatomy"})", R"({"event":"anatomy","seconds":"nan"})", R"({"event":"anatomy","seconds":-1})",
        R"({"event":7})", R"({"event":"step","seconds":1})"}) {
    log.add(Json::parse(text));
  }
  EXPECT_TRUE(log.json().is_null());
  log.add(Json::parse(
      R"({"event":"anatomy","seconds":1,"steps":"x","phases":[3,null,{"seconds":1},{"name":"a","seconds":"b"}],"marks":{}})"));
  log.add(Json::parse(R"({"event":"anatomy","whole":true,"phases":[{"name":"new","p50":1}]})"));
  log.add(Json::parse(R"({"event":"slow_step","seconds":null,"cause":3})"));
  for (int i = 0; i < 200; ++i) {
    Json many = period(i, 1, 1);
    many["phases"][0]["name"] = "phase " + std::to_string(i);
    log.add(many);
  }
  EXPECT_LE(log.json()["phases"].size(), AnatomyLog::kMostPhases);
}

}  // namespace
}  // namespace stoker::io
