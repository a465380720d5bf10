// SPDX-License-Identifier: Apache-2.0
// Checks with the same messages for all tokenizers. Used by the tokenizers. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stoker/base/error.h"

namespace stoker::data {

// DataError for an id outside 0 ... size - 1.
inline void check_id(std::int32_t id, std::size_t size) {
  if (id < 0 || static_cast<std::size_t>(id) >= size) {
    fail<DataError>("data.tokenizer", "id {} cannot be decoded; this tokenizer has ids 0 to {}", id, size - 1);
  }
}

// DataError for text that is not UTF-8, with the offset.
[[noreturn]] inline void fail_no_utf8(std::string_view text, std::size_t at) {
  fail<DataError>("data.tokenizer",
                  "the text is not UTF-8: byte {:#04x} at byte offset {}; convert it, or set tokenizer=bytes, which "
                  "reads any bytes",
                  static_cast<unsigned char>(text[at]), at);
}

}  // namespace stoker::data
