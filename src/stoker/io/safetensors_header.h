// SPDX-License-Identifier: Apache-2.0
// The JSON header of a safetensors file: parsed strictly, checked against the length of the file. Used by the reader
// alone; knows no tensors. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stoker/io/safetensors.h"

namespace stoker::io {

inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the reference implementation's limit

// text: the header's bytes with their padding; file_bytes: the length of the whole file. CheckpointError that begins
// with name. Refuses what the reference implementation 0.8.0 refuses, and duplicate keys wherever they stand.
[[nodiscard]] SafetensorsHeader parse_header(const std::string& name, std::string_view text, std::uint64_t file_bytes);

}  // namespace stoker::io
