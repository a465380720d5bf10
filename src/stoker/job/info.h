// SPDX-License-Identifier: Apache-2.0
// What a file or folder holds, in words. Used by `stoker info`. No state.
#pragma once

#include <string>

namespace stoker::job {

// A run or checkpoint folder, a safetensors file, a data folder or tar; "models", "tasks" and "machine" likewise, in
// lines. DataError for anything else.
[[nodiscard]] std::string info_text(const std::string& what);

}  // namespace stoker::job
