// SPDX-License-Identifier: Apache-2.0
// Names of files and classes in texts that allow only UTF-8 (JSON, TOML): names are bytes, and names that are not clean
// text are written as "hex:...". Used by train and job. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stoker {

// The name unchanged if it is UTF-8 without control characters and does not begin with "hex:"; else in hexadecimal.
std::string byte_name_to_text(std::string_view name);
// The bytes of the name; empty if the text after "hex:" is not hexadecimal.
std::optional<std::string> byte_name_from_text(std::string_view text);

}  // namespace stoker
