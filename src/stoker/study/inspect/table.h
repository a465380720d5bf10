// SPDX-License-Identifier: Apache-2.0
// Is a table all right? What each column holds, gaps, doubled rows, columns that tell the target or that no model can
// learn from. Behind `stoker inspect FILE.csv`. One thread.
#pragma once

#include <filesystem>

#include "stoker/core/option.h"
#include "stoker/study/inspect/data_sheet.h"

namespace stoker::study {

// own: of a tabular task's settings target, sep, header, leave_out and regression; what asks for the target is left out
// without one. DataError as data::read_table(), and for a target or a column to leave out that is not there.
[[nodiscard]] DataSheet inspect_table(const std::filesystem::path& path, const core::TaskValues& own);

}  // namespace stoker::study
