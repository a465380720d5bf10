// SPDX-License-Identifier: Apache-2.0
// What the doctor found, as text for a terminal, as JSON and as a page (docs/doctor.md). Called by `stoker doctor`.
// Thread-safe: no state.
#pragma once

#include <filesystem>
#include <string>

#include "stoker/observe/doctor/examine.h"

namespace stoker::study {

struct Examined {
  observe::doctor::Facts facts;
  observe::doctor::Diagnosis diagnosis;
};
// A run of Stoker, live or ended; a recorded trace of any PyTorch program; or the records of a script that
// watch_script() kept. A folder or an archive of several traces is that of the ranks of a training. DataError as
// observe::doctor::run_facts() and observe::trace::read_traces().
[[nodiscard]] Examined examine_path(const std::filesystem::path& path);

// The verdict first, then findings with their evidence, what is too small to matter, and what could not be told.
[[nodiscard]] std::string diagnosis_text(const Examined& examined);
[[nodiscard]] std::string diagnosis_json(const Examined& examined);
// A page: the findings, where the time of each period went, and of a trace the time line of a step, on which the
// evidence of a finding can be shown. path: what was examined; a trace is read again. DataError as examine_path().
[[nodiscard]] std::string diagnosis_page(const Examined& examined, const std::filesystem::path& path);
// The table of all rules: signal, threshold and its source, what would prove a finding wrong.
[[nodiscard]] std::string rules_text();

}  // namespace stoker::study
