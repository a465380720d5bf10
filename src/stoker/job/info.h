// SPDX-License-Identifier: Apache-2.0
// Describes the content of a file or folder. Used by `stoker info`. No state.
#pragma once

#include <string>

namespace stoker::job {

// A run or checkpoint folder, a safetensors file, a data folder or tar; also "models", "tasks" and "machine". Lines of
// text. DataError for anything else.
[[nodiscard]] std::string info_text(const std::string& what);

}  // namespace stoker::job
