// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/report/verdict.h"

#include <algorithm>
#include <cmath>

#include "stoker/base/bytes_text.h"
#include "stoker/base/fmt.h"
#include "stoker/base/thousands.h"

namespace stoker::io {
namespace {

constexpr double kQuietMeansGone = 120;  // seconds; the files of a run are written at least every second

std::int64_t steps_done(const RunLog& log, const MetricsTable& metrics) {
  return std::max(metrics.last_step, log.end ? log.end->step : 0);
}

// Time of training: over all sessions if the run recorded it, else the sum of its steps.
double seconds_of(const RunLog& log, const MetricsTable& metrics) {
  return log.end && std::isfinite(log.end->seconds) ? log.end->seconds : metrics.seconds;
}

RunState state_of(const RunLog& log) {
  if (!log.end) {
    return log.quiet_seconds > kQuietMeansGone ? RunState::kLost : RunState::kRunning;
  }
  return log.end->outcome == "failed"    ? RunState::kFailed
         : log.end->outcome == "stopped" ? RunState::kStopped
                                         : RunState::kFinished;
}

// "step 846 of 1,692 (50 %)"
std::string place(const RunLog& log, std::int64_t step) {
  if (log.last_step <= 0) {
    return fmt::format("step {}", thousands(step));
  }
  return fmt::format("step {} of {} ({:.0f} %)", thousands(step), thousands(log.last_step),
                     std::floor(100.0 * static_cast<double>(step) / static_cast<double>(log.last_step)));
}

// ", about 31 s of training left", or nothing if unknown.
std::string left(const RunLog& log, const MetricsTable& metrics) {
  const std::int64_t steps = log.last_step - metrics.last_step;
  if (metrics.rows == 0 || steps <= 0 || metrics.seconds <= 0) {
    return "";
  }
  const double seconds = metrics.seconds / static_cast<double>(metrics.rows) * static_cast<double>(steps);
  return fmt::format(", about {} of training left", spoken_duration(seconds));
}

std::string end_text(RunState state, const RunLog& log, const MetricsTable& metrics) {
  const std::int64_t step = steps_done(log, metrics);
  std::string why = log.end && !log.end->text.empty() ? " " + log.end->text : "";
  why += why.empty() || why.ends_with('.') || why.ends_with('!') ? "" : ".";
  switch (state) {
    case RunState::kRunning:
      return fmt::format("Still running: {}{}; last written {} ago.", place(log, step), left(log, metrics),
                         spoken_duration(log.quiet_seconds));
    case RunState::kLost:
      return fmt::format("Ended unexpectedly at {} (killed, or the machine went down): nothing was written for {}{}.",
                         place(log, step), spoken_duration(log.quiet_seconds), left(log, metrics));
    case RunState::kStopped:
      return fmt::format("Stopped on request at {}{}{}", place(log, step), left(log, metrics),
                         why.empty() ? "." : ":" + why);
    case RunState::kFailed: return fmt::format("Failed at {}.{}", place(log, step), why);
    case RunState::kFinished: break;
  }
  if (log.end->outcome == "early_stop") {
    return fmt::format("Finished early at {}: validation no longer improved.{}", place(log, step), why);
  }
  if (log.end->outcome == "time_up") {
    return fmt::format("Finished at its time limit, at {}.{}", place(log, step), why);
  }
  return fmt::format("Finished: all {} steps are done.{}", thousands(step), why);
}

// The metric that selects "best".
const MetricText* main_metric(const RunLog& log, const EvaluationLog& evaluation) {
  for (const CheckpointLog& each : log.checkpoints) {
    for (const MetricText& metric : evaluation.metrics) {
      if (metric.name == each.metric) {
        return &metric;
      }
    }
  }
  return evaluation.metrics.empty() ? nullptr : &evaluation.metrics.front();
}

const ColumnBucket* loss_of(const RowBucket& bucket) {
  return bucket.columns.size() > MetricsTable::kFirstScalar ? &bucket.columns[MetricsTable::kFirstScalar] : nullptr;
}

std::string loss_text(const MetricsTable& metrics) {
  const auto& buckets = metrics.steps.buckets();
  const ColumnBucket* first = buckets.empty() ? nullptr : loss_of(buckets.front());
  const ColumnBucket* last = buckets.empty() ? nullptr : loss_of(buckets.back());
  if (first == nullptr || !first->mean() || !last->mean()) {
    return "";
  }
  return fmt::format("Training {} went from {:.4g} to {:.4g}", metrics.scalars.front(), *first->mean(), *last->mean());
}

std::string reached_text(const RunLog& log, const MetricsTable& metrics) {
  const std::string time = spoken_duration(seconds_of(log, metrics));
  const MetricText* best = log.best ? main_metric(log, *log.best) : nullptr;
  const MetricText* test = log.test ? main_metric(log, *log.test) : nullptr;
  const std::string tested =
      test != nullptr ? fmt::format("; test {} {}", test->name, metric_text(test->name, test->value)) : "";
  if (best != nullptr) {
    return fmt::format("Reached validation {} {} at step {}, after {} of training{}.", best->name,
                       metric_text(best->name, best->value), thousands(log.best->step), time, tested);
  }
  if (metrics.rows == 0) {
    return steps_done(log, metrics) > 0 ? "The steps were not recorded: metrics.csv is missing or empty."
                                        : "No step was finished.";
  }
  const std::string loss = loss_text(metrics);
  return loss.empty() ? fmt::format("{} steps in {}{}; no validation.", thousands(metrics.rows), time, tested)
                      : fmt::format("{} in {}{}; no validation.", loss, time, tested);
}

std::string rate_text(double value) {
  return value >= 1000 ? thousands(std::llround(value)) : fmt::format("{:.3g}", value);
}

void add_metrics(std::vector<Tile>& tiles, const RunLog& log) {
  if (log.best) {
    const MetricText* main = main_metric(log, *log.best);
    if (main != nullptr) {
      tiles.push_back({"best validation " + main->name, metric_text(main->name, main->value),
                       fmt::format("step {}", thousands(log.best->step))});
    }
    for (const MetricText& metric : log.best->metrics) {
      if (metric.name == "loss" && main != &metric) {
        tiles.push_back({"validation loss", metric_text("loss", metric.value), "at the best step"});
      }
    }
  }
  if (log.test) {
    if (const MetricText* main = main_metric(log, *log.test); main != nullptr) {
      tiles.push_back({"test " + main->name, metric_text(main->name, main->value), "with the best weights"});
    }
  }
}

// The peak of a recorded step says what a run needs; what its log has is held between steps.
void add_memory(std::vector<Tile>& tiles, const RunLog& log, const MetricsTable& metrics) {
  if (log.memory) {
    const auto& [step, tensors, process] = *log.memory;
    const std::string more = process > 0 ? fmt::format("; process {}", bytes_text(process)) : "";
    tiles.push_back(
        {"peak memory", bytes_text(tensors), fmt::format("in tensors of step {}{}", thousands(step), more)});
    return;
  }
  double most = -1;
  for (const RowBucket& bucket : metrics.steps.buckets()) {
    const ColumnBucket& memory = bucket.columns[MetricsTable::kMemory];
    most = memory.finite > 0 ? std::max(most, memory.highest) : most;
  }
  if (most >= 0) {
    tiles.push_back({"memory between steps", bytes_text(static_cast<std::int64_t>(most)), "highest, in tensors"});
  }
}

std::vector<Tile> tiles_of(const RunLog& log, const MetricsTable& metrics) {
  std::vector<Tile> tiles;
  add_metrics(tiles, log);
  const std::int64_t step = steps_done(log, metrics);
  tiles.push_back({"steps", thousands(step), log.last_step > 0 ? "of " + thousands(log.last_step) : ""});
  tiles.push_back({"training time", spoken_duration(seconds_of(log, metrics)), ""});
  if (metrics.seconds > 0) {
    tiles.push_back({"samples per second", rate_text(metrics.samples / metrics.seconds), "mean over the run"});
    tiles.push_back(
        {"waiting for data", fmt::format("{:.1f} %", 100 * metrics.data_wait / metrics.seconds), "of step time"});
  }
  add_memory(tiles, log, metrics);
  if (metrics.not_finite.count + metrics.skipped.count > 0) {
    tiles.push_back({"not finite", thousands(metrics.not_finite.count),
                     fmt::format("values; {} steps skipped", thousands(metrics.skipped.count))});
  }
  return tiles;
}

}  // namespace

std::string RunVerdict::text() const {
  return state == RunState::kFinished ? reached + ' ' + end : end + ' ' + reached;
}

RunVerdict verdict(const RunLog& log, const MetricsTable& metrics) {
  const RunState state = state_of(log);
  return {state, reached_text(log, metrics), end_text(state, log, metrics), tiles_of(log, metrics)};
}

std::string_view state_name(RunState state) {
  switch (state) {
    case RunState::kFinished: return "finished";
    case RunState::kRunning: return "running";
    case RunState::kStopped: return "stopped";
    case RunState::kFailed: return "failed";
    case RunState::kLost: return "lost";
  }
  return "";
}

std::string metric_text(std::string_view metric, double value) {
  const bool share = metric.find("accuracy") != metric.npos || metric.starts_with("top");
  return share && value >= 0 && value <= 1 ? fmt::format("{:.1f} %", 100 * value) : fmt::format("{:.4g}", value);
}

std::string spoken_duration(double seconds) {
  if (!std::isfinite(seconds)) {
    return "an unknown time";
  }
  if (seconds < 9.95) {
    return fmt::format("{:.1f} s", seconds);
  }
  const std::int64_t whole = std::llround(seconds);
  const std::int64_t minutes = whole / 60, hours = minutes / 60, days = hours / 24;
  if (whole < 60) {
    return fmt::format("{} s", whole);
  }
  if (hours == 0) {
    return fmt::format("{} min {} s", minutes, whole % 60);
  }
  return days < 2 ? fmt::format("{} h {} min", hours, minutes % 60) : fmt::format("{} days {} h", days, hours % 24);
}

}  // namespace stoker::io
