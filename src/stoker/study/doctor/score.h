// SPDX-License-Identifier: Apache-2.0
// How good the doctor's predictions were on this machine: each trial is kept, in $XDG_STATE_HOME/stoker (else
// ~/.local/state/stoker)/predictions.jsonl. Called by `stoker doctor --try` and `--explain`. Thread-safe: no state.
#pragma once

#include <span>
#include <string>

#include "stoker/study/doctor/cures.h"

namespace stoker::study {

// Appends the trials that had a prediction and were measured. IoError if the file cannot be written.
void keep_score(std::span<const Tried> tried);

// "Score of all predictions here so far: 14 predictions; the measured gain was inside the interval in 11; error: median
// 6.1 %"; empty without any.
// Lines that cannot be read are skipped.
[[nodiscard]] std::string score_text();

}  // namespace stoker::study
