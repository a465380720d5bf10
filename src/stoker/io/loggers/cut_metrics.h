// SPDX-License-Identifier: Apache-2.0
// Takes back what a run logged after the checkpoint that it resumes from. Called by job before the sinks are made;
// no sink may have the files open.
#pragma once

#include <cstdint>
#include <filesystem>

namespace stoker::io {

// Cuts metrics.csv and metrics.jsonl back to the steps up to and including step, and to the evaluations up to and
// including the one at evaluated_step (-1: none): the checkpoint may have been saved before the evaluation of its own
// step, which is then made again. Evaluations of the test split, which end a run, go, and so do the run's end and a row
// that a kill cut in two. Each file is replaced atomically; one that is not there is none to cut. IoError, DataError.
void cut_metrics(const std::filesystem::path& run_folder, std::int64_t step, std::int64_t evaluated_step);

}  // namespace stoker::io
