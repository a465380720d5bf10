// SPDX-License-Identifier: Apache-2.0
// The Python files that record the training of somebody else's script (shim/, embedded in this program), and the
// environment that makes Python load them. Used by `stoker doctor -- COMMAND`. Thread-safe: no state.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stoker::observe::script {

// Writes the files into `folder`, which it creates. IoError.
void write_shim(const std::filesystem::path& folder);

// The variables of `environment` ("NAME=VALUE"), changed so that every Python that a command starts loads the shim from
// `folder` and writes its records into `records`.
[[nodiscard]] std::vector<std::string> with_shim(std::vector<std::string> environment,
                                                 const std::filesystem::path& folder,
                                                 const std::filesystem::path& records);

}  // namespace stoker::observe::script
