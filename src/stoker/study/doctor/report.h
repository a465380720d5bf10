// SPDX-License-Identifier: Apache-2.0
// What the doctor found, as text for a terminal and as JSON (docs/doctor.md). Called by `stoker doctor`. Thread-safe:
// no state.
#pragma once

#include <filesystem>
#include <string>

#include "stoker/observe/doctor/examine.h"

namespace stoker::study {

struct Examined {
  observe::doctor::Facts facts;
  observe::doctor::Diagnosis diagnosis;
};
// A run of Stoker, live or ended. DataError as observe::doctor::run_facts().
[[nodiscard]] Examined examine_run(const std::filesystem::path& folder);

// The verdict first, then findings with their evidence, what is too small to matter, and what could not be told.
[[nodiscard]] std::string diagnosis_text(const Examined& examined);
[[nodiscard]] std::string diagnosis_json(const Examined& examined);
// The table of all rules: signal, threshold and its source, what would prove a finding wrong.
[[nodiscard]] std::string rules_text();

}  // namespace stoker::study
