// SPDX-License-Identifier: Apache-2.0
// The records of time in metrics.jsonl, key by key: docs/observe-anatomy.md describes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/base/file.h"
#include "stoker/io/loggers/metrics_jsonl.h"
#include "support/temp_folder.h"

namespace stoker::io {
namespace {

using namespace core;
using testing::TempFolder;

TEST(MetricsJsonl, HasTheRecordsOfTime) {
  const TempFolder temp;
  MetricsJsonl jsonl(temp.path());
  jsonl.on(
      Fed{.step = 4,
          .seconds = 2,
          .waited_seconds = 0.5,
          .source = {.samples = 64, .threads = 2, .stages = {{"read", 1}}, .slowest_seconds = 0.25, .slowest = "a"},
          .consumer = {{"step", 1.5}}});
  jsonl.on(Anatomy{.time = 9,
                   .step = 4,
                   .steps = 2,
                   .seconds = 1,
                   .phases = {{"fetch", 0.25, 0.125}, {"forward", 0.75}},
                   .marks = {},
                   .p50 = 0.5,
                   .p90 = 0.5,
                   .p99 = 0.5,
                   .slowest = 0.5});
  jsonl.on(Anatomy{.whole = true,
                   .time = 9,
                   .step = 4,
                   .steps = 2,
                   .seconds = 1,
                   .phases = {{.name = "copy", .seconds = 1, .device_seconds = 2, .p50 = 0.5, .p99 = 0.75}},
                   .marks = {{"mine", 0.5}},
                   .p50 = 0.5,
                   .p90 = 0.5,
                   .p99 = 0.5,
                   .slowest = 0.5});
  jsonl.on(SlowStep{9, 3, 1.5, 0.25, "fetch", "slow sample a: 1 s", {{"minor_faults", 7}}});
  jsonl.flush();
  EXPECT_EQ(
      read_text(temp / "metrics.jsonl"),
      R"({"event":"fed","step":4,"seconds":2,"waited":0.5,"samples":64,"threads":2,"loader":{"read":1},"copy":0,)"
      R"("consumer":{"step":1.5},"slowest":"a","slowest_seconds":0.25})"
      "\n"
      R"({"event":"anatomy","version":1,"time":9,"step":4,"steps":2,"seconds":1,"p50":0.5,"p90":0.5,"p99":0.5,)"
      R"("slowest":0.5,"phases":[{"name":"fetch","seconds":0.25,"cpu_seconds":0.125},{"name":"forward","seconds":0.75}],)"
      R"("marks":[]})"
      "\n"
      R"({"event":"anatomy","version":1,"time":9,"step":4,"whole":true,"steps":2,"seconds":1,"p50":0.5,"p90":0.5,)"
      R"("p99":0.5,"slowest":0.5,"phases":[{"name":"copy","seconds":1,"device_seconds":2,"p50":0.5,"p99":0.75}],)"
      R"("marks":[{"name":"mine","seconds":0.5}]})"
      "\n"
      R"({"event":"slow_step","version":1,"time":9,"step":3,"seconds":1.5,"usual_seconds":0.25,"phase":"fetch",)"
      R"("cause":"slow sample a: 1 s","figures":{"minor_faults":7}})"
      "\n");
}

// Stages that were measured in detail tell their time on a core and asleep; the others do not.
TEST(MetricsJsonl, TellsWhatTheLoaderComputed) {
  const TempFolder temp;
  MetricsJsonl jsonl(temp.path());
  Fed fed{.step = 4, .seconds = 2, .waited_seconds = 0.5, .source = {}, .consumer = {}};
  fed.source.cores = 3;
  fed.source.stages = {
      {.name = "read", .seconds = 1, .probed_seconds = 0.5, .probed_cpu_seconds = 0.125, .probed_asleep_seconds = 0.25},
      {.name = "resize", .seconds = 2}};
  jsonl.on(fed);
  jsonl.flush();
  EXPECT_THAT(read_text(temp / "metrics.jsonl"),
              ::testing::HasSubstr(R"("loader_cpu":{"read":0.25},"loader_asleep":{"read":0.5},"cores":3})"));
}

TEST(MetricsJsonl, HasTheTimesOfRanks) {
  const TempFolder temp;
  MetricsJsonl jsonl(temp.path());
  RankTimes times{
      .time = 9, .step = 4, .steps = 2, .seconds = 1, .exposed = 0.25, .ranks = {}, .hosts = {}, .buckets = {}};
  times.ranks = {{.data = 0.5, .saving = 0, .computed = 0.25, .waited = 0, .delayed = 0.125},
                 {.computed = 0.5, .waited = 0.25}};
  times.hosts = {"a", "b"};
  jsonl.on(times);
  times.whole = true;
  times.buckets = {{.bytes = 64, .seconds = 0.5, .steps = 2}};
  jsonl.on(times);
  jsonl.flush();
  EXPECT_EQ(
      read_text(temp / "metrics.jsonl"),
      R"({"event":"ranks","version":1,"time":9,"step":4,"steps":2,"seconds":1,"exposed":0.25,"ranks":[)"
      R"({"host":"a","computed":0.25,"data":0.5,"saving":0,"delayed":0.125,"waited":0},)"
      R"({"host":"b","computed":0.5,"waited":0.25}],"buckets":[]})"
      "\n"
      R"({"event":"ranks","version":1,"time":9,"step":4,"whole":true,"steps":2,"seconds":1,"exposed":0.25,"ranks":[)"
      R"({"host":"a","computed":0.25,"data":0.5,"saving":0,"delayed":0.125,"waited":0},)"
      R"({"host":"b","computed":0.5,"waited":0.25}],"buckets":[{"bytes":64,"seconds":0.5,"steps":2}]})"
      "\n");
}

}  // namespace
}  // namespace stoker::io
