// SPDX-License-Identifier: Apache-2.0
// How byte-level tokenizers spell bytes as printable characters: a byte that is printable in Latin-1 as itself, the
// others as U+0100 and what follows. Source: Radford et al. 2019 (GPT-2), bytes_to_unicode in encoder.py. Used by the
// reader of tokenizer.json. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stoker::data {

// The bytes that a token's spelling stands for; empty where a character of it spells no byte.
[[nodiscard]] std::optional<std::string> bytes_of_spelling(std::string_view spelling);
// The character, in UTF-8, that spells a byte.
[[nodiscard]] std::string spelling_of(unsigned char byte);

}  // namespace stoker::data
