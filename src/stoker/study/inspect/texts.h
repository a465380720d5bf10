// SPDX-License-Identifier: Apache-2.0
// Are texts all right? Bytes that are no UTF-8, control characters, repeated files and lines, lines of the validation
// cut that train has, too. Behind `stoker inspect FILE.txt`. One thread.
#pragma once

#include <filesystem>

#include "stoker/study/inspect/data_sheet.h"

namespace stoker::study {

// path: what data::read_text_files() takes; DataError as there.
[[nodiscard]] DataSheet inspect_texts(const std::filesystem::path& path);

}  // namespace stoker::study
