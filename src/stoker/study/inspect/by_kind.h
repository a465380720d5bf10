// SPDX-License-Identifier: Apache-2.0
// Chooses the inspection by the kind of data: a table, texts or images. Behind `stoker inspect`. One thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stoker/study/inspect/data_sheet.h"

namespace stoker::study {

// The sheet of a table or of texts; nothing for images, which inspect_images() checks. words: key=value for target,
// sep, header, leave_out and regression of a table; ConfigError for other keys and for data that is not a table.
// DataError as inspect_table() and inspect_texts().
[[nodiscard]] std::optional<DataSheet> inspect_by_kind(const std::filesystem::path& path,
                                                       const std::vector<std::string>& words);

}  // namespace stoker::study
