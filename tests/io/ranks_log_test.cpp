// SPDX-License-Identifier: Apache-2.0
// The times of ranks in a run's log, as the report reads them: sums, a resume with other ranks, and damaged records.
#include "stoker/io/report/ranks_log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace stoker::io {
namespace {

using Json = nlohmann::ordered_json;

// 10 steps of 0.2 s.
Json period(std::size_t ranks) {
  Json rows = Json::array();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    rows.push_back({{"host", "node" + std::to_string(rank)},
                    {"computed", 0.5},
                    {"data", 0.25 * static_cast<double>(rank)},
                    {"waited", 0.125}});
  }
  return {{"event", "ranks"}, {"steps", 10},   {"seconds", 2},
          {"exposed", 0.5},   {"ranks", rows}, {"buckets", Json::array()}};
}

TEST(RanksLog, SumsPeriodsAndTakesBucketsFromTheWhole) {
  RanksLog log;
  EXPECT_TRUE(log.json().is_null());
  log.add(period(2));
  log.add(period(2));
  Json whole = period(2);
  whole["whole"] = true;
  whole["buckets"] = {{{"bytes", 2'000'000}, {"seconds", 0.1}, {"steps", 50}},
                      {{"bytes", 8}, {"seconds", 0}, {"steps", 0}}};
  log.add(whole);
  const Json json = log.json();
  EXPECT_EQ(json["steps"], 20);
  EXPECT_EQ(json["exposed"], 0.25);
  EXPECT_EQ(json["ranks"],
            Json::parse(R"([[0, "node0", 50, 0, null, null, 12.5], [1, "node1", 50, 25, null, null, 12.5]])"));
  EXPECT_EQ(json["buckets"], Json::parse("[[0, 2000000, 2, 1000], [1, 8, null, null]]"));
  EXPECT_EQ(json["left_out"], 0);
}

TEST(RanksLog, OfARunThatGoesOnWithOtherRanksTheNewOnes) {
  RanksLog log;
  log.add(period(2));
  log.add(period(3));
  EXPECT_EQ(log.json()["steps"], 10);
  EXPECT_EQ(log.json()["ranks"].size(), 3);
}

TEST(RanksLog, HasRoomForAPageOfRanks) {
  RanksLog log;
  Json many = period(200);
  many["ranks"][150]["waited"] = 0;
  log.add(many);
  EXPECT_EQ(log.json()["ranks"].size(), RanksLog::kMostRows);
  EXPECT_EQ(log.json()["ranks"][0][0], 150) << "the one that waited least";
  EXPECT_EQ(log.json()["left_out"], 136);
}

TEST(RanksLog, DamagedRecordsChangeNothing) {
  RanksLog log;
  log.add(period(2));
  const Json before = log.json();
  for (const char* const text :
       {R"({"event":"ranks"})", R"({"event":"ranks","steps":10,"seconds":1,"ranks":7})",
        R"({"event":"ranks","steps":-1,"ranks":[{}]})", R"({"event":"ranks","steps":5,"ranks":[1,2]})",
        R"({"event":"ranks","steps":5,"ranks":[]})"}) {
    log.add(Json::parse(text));
    EXPECT_EQ(log.json(), before) << text;
  }
}

}  // namespace
}  // namespace stoker::io
