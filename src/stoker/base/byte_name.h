// SPDX-License-Identifier: Apache-2.0
// Names of files and classes in texts that hold UTF-8 alone (JSON, TOML): names are bytes, and those that are no clean
// text travel as "hex:...". Used by train and job. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stoker {

// The name as it is where it is UTF-8 without control characters and does not begin with "hex:"; else in hexadecimal.
std::string byte_name_to_text(std::string_view name);
// The bytes again; empty if what follows "hex:" is no hexadecimal.
std::optional<std::string> byte_name_from_text(std::string_view text);

}  // namespace stoker
