// SPDX-License-Identifier: Apache-2.0
// Chooses the place of a report: what `stoker report` does. Thread-safe: no state.
#pragma once

#include <filesystem>
#include <vector>

namespace stoker::job {

// Writes the page of the runs to out, or if out is empty: for one run to its folder as report.html, for several runs to
// the working folder as comparison.html. Returns the file's path. DataError for a path that is not a run folder,
// IoError.
std::filesystem::path write_report(const std::vector<std::filesystem::path>& runs, const std::filesystem::path& out);

}  // namespace stoker::job
