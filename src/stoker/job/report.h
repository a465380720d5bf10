// SPDX-License-Identifier: Apache-2.0
// Where the report of runs goes: what `stoker report` does. Thread-safe: no state.
#pragma once

#include <filesystem>
#include <vector>

namespace stoker::job {

// Writes the page of the runs to out, or where out is empty: one run's into its folder as report.html, several runs'
// into the working folder as comparison.html. Returns the file's path. DataError for what is no run folder, IoError.
std::filesystem::path write_report(const std::vector<std::filesystem::path>& runs, const std::filesystem::path& out);

}  // namespace stoker::job
