// SPDX-License-Identifier: Apache-2.0
// The byte-level BPE of a tokenizer.json, put together: added tokens are found first, the text between them is cut into
// words, and each word's bytes are merged. tokenizer_file.h reads its parts. Any thread once made.
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
  using is_transparent = void;  // looks up without making a string
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
template <typename Value>
using ByText = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

// Puts a space before a piece that does not begin with one.
struct PrefixSpace {};

struct BpeParts {
  std::vector<std::string> tokens;  // by id: the bytes that it stands for
  std::array<std::int32_t, 256> byte_ids{};
  std::vector<BytePairs::Merge> merges;
  ByText<std::int32_t> words;  // words that are a token, whatever the merges make of them
  std::vector<std::variant<SplitRule, PrefixSpace>> stages;
  // Texts that are one token wherever they stand. The first list is looked for in the whole text, the second in what is
  // left; the longest counts. `tokenizers` calls the second ones normalized.
  struct Added {
    std::string text;
    std::int32_t id;
  };
  std::array<std::vector<Added>, 2> added;
  std::string source;  // the JSON text it was read from
};

[[nodiscard]] std::unique_ptr<Tokenizer> bpe_tokenizer(BpeParts parts);

}  // namespace stoker::data
