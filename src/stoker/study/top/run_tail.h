// SPDX-License-Identifier: Apache-2.0
// A run as its metrics.jsonl tells while it is written: each look reads only what came since the last one. Used by
// `stoker top`. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stoker::study {

inline constexpr std::size_t kHistory = 240;  // values of a plot

using History = std::deque<double>;
// Adds a value and forgets the oldest.
inline void remember(History& history, double value) {
  history.push_back(value);
  if (history.size() > kHistory) {
    history.pop_front();
  }
}

struct RunState {
  std::string title;
  std::int64_t last_step = 0;            // of the whole run; 0: unknown
  std::int64_t step = 0;                 // the newest one
  double step_seconds = 0, samples = 0;  // of recent steps, averaged; 0: unknown
  std::optional<double> loss;
  std::string evaluation;                              // "val accuracy 0.913"
  std::string outcome;                                 // "done", "failed", ...; empty: it goes on
  std::map<std::string, double> monitor;               // newest figures of the machine
  std::vector<std::pair<std::string, double>> phases;  // of the newest anatomy: seconds
  double phase_seconds = 0;                            // of all of them
  History losses, speeds;                              // speeds: samples per second
  std::string finding;                                 // the newest
};

class RunTail {
 public:
  explicit RunTail(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Reads what was written since the last call. A file that became shorter is read from its start; what is
  // no regular file is as good as empty.
  const RunState& look();
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

 private:
  void line(std::string_view text);
  void step(const nlohmann::ordered_json& event);

  std::filesystem::path folder_;
  std::int64_t read_ = 0;  // bytes
  RunState state_;
};

}  // namespace stoker::study
