// SPDX-License-Identifier: Apache-2.0
// The spelling of bytes as printable characters in byte-level tokenizers: a byte that is printable in Latin-1 is
// spelled as itself, the others as U+0100 and following. Source: Radford et al. 2019 (GPT-2), bytes_to_unicode in
// encoder.py. Used by the reader of tokenizer.json. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stoker::data {

// The bytes of a token's spelling; empty if a character does not spell a byte.
[[nodiscard]] std::optional<std::string> bytes_of_spelling(std::string_view spelling);
// The character, in UTF-8, that spells a byte.
[[nodiscard]] std::string spelling_of(unsigned char byte);

}  // namespace stoker::data
