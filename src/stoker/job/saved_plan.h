// SPDX-License-Identifier: Apache-2.0
// Reads a plan.json, and changes the few values that a resumed run may change. Part of Job. Thread-safe: no state.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "stoker/train/plan.h"

namespace stoker::job {

// ConfigError that names the file.
[[nodiscard]] train::Plan read_plan(const std::filesystem::path& file);

// Whether a resumed run may have another value of it.
[[nodiscard]] bool may_change(std::string_view key);

// change: "epochs=20". ConfigError for a value that a run cannot continue with.
void change_plan(train::Plan& plan, const std::string& change);

}  // namespace stoker::job
