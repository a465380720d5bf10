// SPDX-License-Identifier: Apache-2.0
// The memory record of a run for people, and for programs: what `stoker memory` prints. Thread-safe: no state.
#pragma once

#include <filesystem>
#include <string>

namespace stoker::job {

// Tables of what the peak held, the stages of the step and the largest tensors, a chart of the step, and the
// out-of-memory errors that the run survived. DataError if the folder is not a run, or has no record.
[[nodiscard]] std::string memory_text(const std::filesystem::path& run);
// The record (docs/formats.md) with these errors as "survived", as JSON.
[[nodiscard]] std::string memory_as_json(const std::filesystem::path& run);

}  // namespace stoker::job
