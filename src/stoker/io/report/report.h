// SPDX-License-Identifier: Apache-2.0
// report.html: one self-contained page about one run, or about several side by side, made only from the files in their
// run folders, also during a run. Called by job and `stoker report`. Thread-safe: no state.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stoker::io {

// The page as UTF-8 HTML, always under 3 MB. One run: everything; several: overlaid curves and differences of their
// plans. DataError if a folder is not a run folder or a file cannot be read, ConfigError without runs.
[[nodiscard]] std::string report_page(const std::vector<std::filesystem::path>& runs);

// Writes report_page() of one run to its report.html, atomically; returns its path. DataError, IoError.
std::filesystem::path write_report(const std::filesystem::path& run);

}  // namespace stoker::io
