// SPDX-License-Identifier: Apache-2.0
// Which inspection suits the data: of a table, of texts, or of images. Behind `stoker inspect`. One thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stoker/study/inspect/data_sheet.h"

namespace stoker::study {

// The sheet of a table or of texts; nothing for what training would take for images, which inspect_images() looks
// at. words: key=value of a table's target, sep, header, leave_out, regression; ConfigError for others and elsewhere.
// DataError as inspect_table() and inspect_texts().
[[nodiscard]] std::optional<DataSheet> inspect_by_kind(const std::filesystem::path& path,
                                                       const std::vector<std::string>& words);

}  // namespace stoker::study
