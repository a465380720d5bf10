// SPDX-License-Identifier: Apache-2.0
// Checks a table: content of each column, gaps, duplicate rows, columns that give away the target, columns that no
// model can learn from. Behind `stoker inspect FILE.csv`. One thread.
#pragma once

#include <filesystem>

#include "stoker/core/option.h"
#include "stoker/study/inspect/data_sheet.h"

namespace stoker::study {

// own: the options target, sep, header, leave_out and regression of a tabular task. Without a target, checks that need
// one are skipped. DataError as data::read_table(), and for a target or a column of leave_out that does not exist.
[[nodiscard]] DataSheet inspect_table(const std::filesystem::path& path, const core::TaskValues& own);

}  // namespace stoker::study
