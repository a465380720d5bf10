// SPDX-License-Identifier: Apache-2.0
// Removes what a run logged after the checkpoint that it resumes from. Called by job before the sinks are made; no sink
// may have the files open.
#pragma once

#include <cstdint>
#include <filesystem>

namespace stoker::io {

// Truncates metrics.csv and metrics.jsonl to the steps up to and including step, and to the evaluations up to and
// including evaluated_step (-1: none): the checkpoint may have been saved before the evaluation of its own step, which
// is then repeated. Also removes evaluations on the test split, the end of the run, and an incomplete last row. Each
// file is replaced atomically; a missing file is skipped. IoError, DataError.
void cut_metrics(const std::filesystem::path& run_folder, std::int64_t step, std::int64_t evaluated_step);

}  // namespace stoker::io
