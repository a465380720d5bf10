// SPDX-License-Identifier: Apache-2.0
// The part of the rule input_wait that reads a script's records. Used by input_wait.cpp. Thread-safe: no state.
#pragma once

#include "stoker/observe/doctor/rule.h"

namespace stoker::observe::doctor {

// The cause whose cure would gain most, of: a library that is slow for what it does, collate, many small tensors
// between processes, storage, and too few workers.
[[nodiscard]] Judgement judge_script_input(const Facts& facts);

}  // namespace stoker::observe::doctor
