// SPDX-License-Identifier: Apache-2.0
// Checks texts: bytes that are not UTF-8, control characters, repeated files and lines, lines of the validation part
// that are also in train. Behind `stoker inspect FILE.txt`. One thread.
#pragma once

#include <filesystem>

#include "stoker/study/inspect/data_sheet.h"

namespace stoker::study {

// path: as for data::read_text_files(); DataError as there.
[[nodiscard]] DataSheet inspect_texts(const std::filesystem::path& path);

}  // namespace stoker::study
