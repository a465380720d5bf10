// SPDX-License-Identifier: Apache-2.0
// What can be tried in a training, and what came of it. Used by `stoker doctor --try` and `--apply`. Thread-safe: no
// state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/study/doctor/report.h"
#include "stoker/study/paired.h"

namespace stoker::study {

// A change that the shim can make in a running script (observe/script/shim/stoker_shim/trial.py).
struct Cure {
  std::string rule;                                         // that proposes it; empty: a switch that no rule judges
  std::string option;                                       // "num_workers=4"
  std::string where;                                        // its call: "train.py:14"; "train.py:0": the whole script
  std::optional<observe::doctor::Prediction> prediction{};  // none: only the trial tells
  bool changes_results = false;                             // by other rounding or random numbers
};

// Whether trial.py knows a way in a script.
[[nodiscard]] bool can_be_tried(std::string_view option);

// Findings whose option can be tried, most gain first; then switches that no rule could judge.
[[nodiscard]] std::vector<Cure> cures(const Examined& examined);

// Those of findings, whether they can be tried or not.
[[nodiscard]] std::vector<Cure> proposed(const Examined& examined);

struct Tried {
  Cure cure;
  Ratio gain;           // speed with the change, as a multiple of the speed without
  bool kept = false;    // it was set in the trials that followed
  std::string trouble;  // why nothing was measured; empty: it was
};

struct Trials {
  Examined examined;  // the training as it is
  std::vector<Tried> tried;
  bool stopped = false;  // by a signal, before all were tried
};

// A change pays if it surely gains: 2 % or more, and no pair of speeds says otherwise.
[[nodiscard]] bool pays(const Ratio& gain);

// "num_workers=4 at train.py:14"
[[nodiscard]] std::string change_text(const Cure& cure);
// What the trials say, for people and as JSON.
[[nodiscard]] std::string trials_text(const std::vector<Tried>& tried);
[[nodiscard]] std::string trials_json(const Trials& trials);

}  // namespace stoker::study
