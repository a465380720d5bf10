// SPDX-License-Identifier: Apache-2.0
// A rule of the doctor: one cause of lost time, what shows it, and what its cure would gain. Each rule is one file in
// rules/. It reads facts and nothing else. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "stoker/observe/doctor/facts.h"
#include "stoker/observe/doctor/prediction.h"

namespace stoker::observe::doctor {

// The cheapest record that holds a rule's signal.
enum class Level : std::uint8_t {
  kRun,      // the anatomy and the loader's figures: always recorded by Stoker
  kMonitor,  // figures of the machine
  kTrace,    // a recorded trace
  kScript,   // what only the Python program knows
};
[[nodiscard]] std::string_view level_name(Level level);

inline constexpr double kWorthSaying = 0.02;  // predicted gain; less goes to the appendix

struct Finding {
  std::string claim;                  // "JPEG decode on 1 loader thread holds the training up"
  std::vector<std::string> evidence;  // facts with their source: "fetch: 61 % of the time (anatomy, steps 12 to 450)"
  Prediction gain;
  std::string cure;      // "more loader threads"
  std::string option;    // that does it, of Stoker or in the script: "threads=3", "num_workers=3"; empty: there is none
  bool in_host = false;  // it saves time of the host within steps: on a GPU that counts until the GPU is the limit
  bool broad = false;    // the cure changes how the whole training runs: ranked by gain.low, behind cures of one place
  std::string danger;    // what is worse than lost time: "results are wrong"; empty: nothing is
};

// Nothing wrong as far as the signal tells.
struct Healthy {};
// The signal is missing.
struct Abstained {
  std::string missing;  // "the loader's figures": what would decide
};
using Judgement = std::variant<Healthy, Abstained, Finding>;

struct Rule {
  std::string_view id;  // "input_wait"
  Level level;
  std::string_view signal;  // what it reads
  std::string_view threshold;
  std::string_view source;    // of the threshold
  std::string_view disproof;  // what would prove a finding wrong
  Judgement (*judge)(const Facts&);
  bool needs_steps = true;  // it reads how the time of steps was spent
};

// All, in the order in which people look for causes.
[[nodiscard]] const std::vector<Rule>& rules();

}  // namespace stoker::observe::doctor
