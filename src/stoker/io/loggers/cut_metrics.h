// SPDX-License-Identifier: Apache-2.0
// Takes back what a run logged after the checkpoint that it resumes from. Called by job before the sinks are made;
// no sink may have the files open.
#pragma once

#include <cstdint>
#include <filesystem>

namespace stoker::io {

// Cuts metrics.csv and metrics.jsonl back to the rows of steps up to and including step, each file atomically; a row
// that a kill cut in two and the end of the run go, too. A file that is not there is none to cut. IoError, DataError.
void cut_metrics(const std::filesystem::path& run_folder, std::int64_t step);

}  // namespace stoker::io
