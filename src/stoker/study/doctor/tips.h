// SPDX-License-Identifier: Apache-2.0
// The tips that Stoker knows, from the table in docs/tips.md, which is embedded in this program. Called by `stoker
// doctor
// --explain`. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

namespace stoker::study {

// A row of the table, as written there.
struct KnownTip {
  std::string number, tip, care, option;
  std::string rule;    // of the doctor, or several; or "none: REASON"
  std::string bench;   // a row of `stoker bench tips`, or a file in bench/results; or "none: REASON"
  std::string figure;  // empty: none yet
};
[[nodiscard]] const std::vector<KnownTip>& doctor_tips();

// The tips with option and rule, for a terminal.
[[nodiscard]] std::string tips_text();

}  // namespace stoker::study
