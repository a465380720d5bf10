// SPDX-License-Identifier: Apache-2.0
// The candidates of shell completion: commands, options and their values. Used by `stoker __complete`, so it starts
// nothing and touches no device. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "stoker/core/option.h"

namespace stoker::job {

// The options key=value that a command takes; empty: none.
[[nodiscard]] std::vector<core::Option> options_of(const std::string& command);

// Candidates for the last word, given the words before it. commands: candidates for the first word. flags: those of the
// command that the first word names, for a last word that begins with a dash.
[[nodiscard]] std::vector<std::string> complete(const std::vector<std::string>& commands,
                                                const std::vector<std::string>& flags,
                                                const std::vector<std::string>& words);

}  // namespace stoker::job
