// SPDX-License-Identifier: Apache-2.0
// The anatomy of a run's steps from its metrics.jsonl, in bounded memory: time by phase over the run, and the slowest
// steps. Filled by read_run_log(). One thread.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace stoker::io {

// Seconds; -1: unknown.
struct PhaseLog {
  std::string name;
  double seconds = 0, cpu = -1, device = -1;
  double p50 = -1, p99 = -1;  // of a step, in the newest session that has ended
};

struct PeriodLog {
  std::int64_t step = 0, steps = 0;  // the last step; how many
  double seconds = 0;
  std::vector<double> phases;  // seconds, in the order of AnatomyLog::phases; may be shorter
};

struct SlowStepLog {
  std::int64_t step = 0;
  double seconds = 0, usual = 0;
  std::string phase, cause;
};

class AnatomyLog {
 public:
  static constexpr std::size_t kMostPeriods = 160;  // beyond, neighbours are merged
  static constexpr std::size_t kMostSlow = 30;      // those that took the most extra time
  static constexpr std::size_t kMostPhases = 64;

  // Records "anatomy" and "slow_step"; others, and what is damaged, change nothing.
  void add(const nlohmann::ordered_json& event);

  // For the page; null if nothing was recorded.
  [[nodiscard]] nlohmann::ordered_json json() const;

 private:
  void add_period(const nlohmann::ordered_json& event);
  void halve();
  void add_whole(const nlohmann::ordered_json& event);
  void add_slow(const nlohmann::ordered_json& event);

  std::vector<PhaseLog> phases_, marks_;
  std::vector<PeriodLog> periods_;           // each of as many records as
  std::size_t per_place_ = 1, in_last_ = 0;  // per_place_ says; the last may have fewer
  std::vector<SlowStepLog> slow_;
  std::int64_t slow_steps_ = 0, steps_ = 0;
  double seconds_ = 0;
  double p50_ = -1, p99_ = -1, slowest_ = -1;
};

}  // namespace stoker::io
