// SPDX-License-Identifier: Apache-2.0
// The JSON header of a safetensors file: parsed strictly and checked against the length of the file. Used only by the
// reader; independent of tensors. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stoker/io/safetensors.h"

namespace stoker::io {

inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the reference implementation's limit

// text: the bytes of the header with padding; file_bytes: the length of the whole file. CheckpointError that begins
// with name. Rejects what the reference implementation 0.8.0 rejects, and duplicate keys everywhere.
[[nodiscard]] SafetensorsHeader parse_header(const std::string& name, std::string_view text, std::uint64_t file_bytes);

}  // namespace stoker::io
