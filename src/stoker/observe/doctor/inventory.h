// SPDX-License-Identifier: Apache-2.0
// The switches of a training that cost time when they are set wrong: what they are, and what they should be here. What
// they cost in this training is told by the finding of their rule, if there is one. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stoker/observe/doctor/facts.h"

namespace stoker::observe::doctor {

struct Switch {
  std::string name;              // "anomaly detection"
  std::string value;             // "on"
  std::string wanted;            // "off"; empty: it is as it should be here, or only a measurement could tell
  std::string_view rule;         // whose finding tells its cost; empty: none does
  std::string option{};          // what a trial could set: "pin_memory=True", "precision=bf16"; empty: nothing
  bool changes_results = false;  // by other rounding or random numbers, if it is set
};

// Whether torch has a fused update of an optimizer.
[[nodiscard]] bool has_fused_update(std::string_view optimizer);

// Those that the records tell. Empty for a trace and for a process that was watched from outside.
[[nodiscard]] std::vector<Switch> inventory(const Facts& facts);

}  // namespace stoker::observe::doctor
