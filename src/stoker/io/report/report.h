// SPDX-License-Identifier: Apache-2.0
// report.html: one self-contained page about a run, or about several side by side, made from the files of their run
// folders and nothing else, also while a run goes on. Called by job and `stoker report`. Thread-safe: no state.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stoker::io {

// The page as UTF-8 HTML, under 3 MB whatever the runs hold. One run: all there is to see; several: overlaid curves and
// where their plans differ. DataError if a folder is no run folder or a file of it cannot be read, ConfigError for
// none.
[[nodiscard]] std::string report_page(const std::vector<std::filesystem::path>& runs);

// report_page() of one run into its report.html, atomically; the path of it. DataError, IoError.
std::filesystem::path write_report(const std::filesystem::path& run);

}  // namespace stoker::io
