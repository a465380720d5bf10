// SPDX-License-Identifier: Apache-2.0
// Changes in a Python script as a unified diff. Called by `stoker doctor --patch`. Thread-safe: no state.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "stoker/study/doctor/cures.h"

namespace stoker::study {

inline constexpr std::string_view kNotInPatch = "not in the patch: ";  // how such a line begins

// Written by the script's own Python, which knows its grammar, with paths from the working folder; `git apply` takes
// it. Changes without a place in a script are named in lines above the diff. Empty without changes, if the records know
// no place, or if that Python cannot be run. IoError.
[[nodiscard]] std::string patch_of(std::span<const Cure> changes, const observe::doctor::Facts& facts);

}  // namespace stoker::study
