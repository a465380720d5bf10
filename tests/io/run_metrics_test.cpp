// SPDX-License-Identifier: Apache-2.0
// What the monitor and the anatomy of steps become as metrics; tests/house/prometheus_test.py reads those of a run.
#include "stoker/io/loggers/run_metrics.h"

#include <gtest/gtest.h>

namespace stoker::io {
namespace {

using namespace core;

bool shows(RunMetrics& metrics, double now, const std::string& line) {
  return metrics.text(now).find('\n' + line + '\n') != std::string::npos;
}

TEST(RunMetrics, AFigureThatTheMonitorNoLongerGivesDisappears) {
  RunMetrics metrics;
  metrics.on(Monitored{100, 1, 5, {{"gpu0.busy_share", 0.5}, {"gpu1.busy_share", 0.25}}});
  for (int time = 101; time <= 104; ++time) {
    metrics.on(Monitored{static_cast<double>(time), 1, 5, {{"gpu1.busy_share", 0.75}}});
    EXPECT_EQ(shows(metrics, time, "stoker_gpu_busy_share{gpu=\"0\"} 0.5"), time <= 103) << time;
    EXPECT_TRUE(shows(metrics, time, "stoker_gpu_busy_share{gpu=\"1\"} 0.75")) << time;
  }
  metrics.on(Monitored{105, 1, 5, {{"gpu0.busy_share", 1}}});
  EXPECT_TRUE(shows(metrics, 105, "stoker_gpu_busy_share{gpu=\"0\"} 1"));
}

TEST(RunMetrics, FiguresOfAMonitorThatStoppedDisappear) {
  RunMetrics metrics;
  metrics.on(Monitored{100, 10, 5, {{"machine.busy_cores", 2}}});
  EXPECT_TRUE(shows(metrics, 130, "stoker_machine_busy_cores 2"));
  EXPECT_EQ(metrics.text(131).find("stoker_machine"), std::string::npos);
}

TEST(RunMetrics, AFigureThatComesEveryTenSecondsStays) {
  RunMetrics metrics;
  const auto pass = [&](int from, int to) {
    for (int time = from; time < to; ++time) {
      Monitored event{static_cast<double>(time), 1, 5, {{"process.cpu_cores", 1}}};
      if (time % 10 == 0) {
        event.figures.push_back({"process.proportional_bytes", 7});
      }
      metrics.on(event);
    }
  };
  pass(100, 111);
  for (int time = 111; time < 140; ++time) {
    pass(time, time + 1);
    EXPECT_TRUE(shows(metrics, time, "stoker_process_proportional_bytes 7")) << time;
  }
}

TEST(RunMetrics, APauseOfAFigureIsNotItsInterval) {
  RunMetrics metrics;
  metrics.on(Monitored{100, 1, 5, {{"gpu0.pcie_width", 16}}});
  metrics.on(Monitored{1100, 1, 5, {{"gpu0.pcie_width", 8}}});
  EXPECT_TRUE(shows(metrics, 1103, "stoker_gpu_pcie_width{gpu=\"0\"} 8"));
  EXPECT_FALSE(shows(metrics, 1131, "stoker_gpu_pcie_width{gpu=\"0\"} 8"));
}

TEST(RunMetrics, TheAnatomyOfAWholeSessionChangesNothing) {
  RunMetrics metrics;
  Anatomy period;
  period.step = period.steps = 10;
  period.seconds = 4;
  period.phases = {{"forward", 4, 3, 2}};
  period.p50 = period.p90 = period.p99 = period.slowest = 0.5;
  metrics.on(period);
  const std::string before = metrics.text(0);
  EXPECT_TRUE(shows(metrics, 0, "stoker_phase_seconds_total{phase=\"forward\"} 4"));
  period.whole = true;  // estimated differently
  period.phases = {{"forward", 3.5, 3.25, 2}, {"backward", 0.5, -1, -1}};
  period.p50 = 0.25;
  metrics.on(period);
  EXPECT_EQ(metrics.text(0), before);
}

TEST(RunMetrics, TheTimeOfPeriodsIsAddedUp) {
  RunMetrics metrics;
  RunStarted start;
  start.first_step = 100;  // of a resumed run
  metrics.on(start);
  for (int i = 1; i <= 3; ++i) {
    Anatomy period;
    period.step = 100 + 10 * i;
    period.steps = 10;
    period.phases = {{"forward", 1, -1, -1}};
    metrics.on(period);
  }
  EXPECT_TRUE(shows(metrics, 0, "stoker_phase_seconds_total{phase=\"forward\"} 3"));
}

}  // namespace
}  // namespace stoker::io
