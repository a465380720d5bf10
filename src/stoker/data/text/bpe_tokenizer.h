// SPDX-License-Identifier: Apache-2.0
// The byte-level BPE of a tokenizer.json: finds added tokens first, divides the text between them into words, and
// merges the bytes of each word. tokenizer_file.h reads its parts. Usable from any thread once made.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "stoker/data/text/byte_pairs.h"
#include "stoker/data/text/text_split.h"
#include "stoker/data/text/tokenizer.h"

namespace stoker::data {

struct TextHash {
  using is_transparent = void;  // lookup without making a string
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
template <typename Value>
using ByText = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

// Adds a space before a piece that does not begin with one.
struct PrefixSpace {};

struct BpeParts {
  std::vector<std::string> tokens;  // by id: the bytes of the token
  std::array<std::int32_t, 256> byte_ids{};
  std::vector<BytePairs::Merge> merges;
  ByText<std::int32_t> words;  // words that are one token, regardless of merges
  std::vector<std::variant<SplitRule, PrefixSpace>> stages;
  // Texts that are always one token. The first list is searched in the whole text, the second in the rest; the longest
  // match wins. `tokenizers` calls the second list normalized.
  struct Added {
    std::string text;
    std::int32_t id;
  };
  std::array<std::vector<Added>, 2> added;
  std::string source;  // the original JSON text
};

[[nodiscard]] std::unique_ptr<Tokenizer> bpe_tokenizer(BpeParts parts);

}  // namespace stoker::data
