// SPDX-License-Identifier: Apache-2.0
// Splits text into words as a tokenizer.json says: with regular expressions of Oniguruma, the library that `tokenizers`
// also uses. Used by the byte-level BPE. A rule may be used from any thread once made.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::data {

// Which parts are kept: matches, gaps between matches, or both. Pieces always end where a match begins or ends.
enum class Keep { kAll, kMatches, kGaps };

class SplitRule {
 public:
  // pattern is UTF-8. DataError with Oniguruma's message if it is not a regular expression.
  SplitRule(const std::string& pattern, Keep keep);

  // Passes the pieces of text to take, in order; no piece is empty. text is UTF-8. DataError if the expression fails.
  void split(std::string_view text, const std::function<void(std::string_view)>& take) const;
  // The offset of the first match at or after from, and its end; empty if there is none.
  struct Match {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  [[nodiscard]] std::optional<Match> find(std::string_view text, std::size_t from) const;

 private:
  struct Compiled;  // hides oniguruma.h
  std::shared_ptr<const Compiled> compiled_;
  Keep keep_;
};

// The first character that is missing in Oniguruma's Unicode tables and may be a letter or a number in newer tables, so
// that word boundaries might differ from `tokenizers`. Emoji and noncharacters are never reported.
[[nodiscard]] std::optional<std::size_t> first_unassigned(std::string_view text);
// "Oniguruma 6.9.8", for messages.
[[nodiscard]] std::string split_library();

// An expression that matches only this text.
[[nodiscard]] std::string literal_pattern(std::string_view text);

// The expression of GPT-2: English contractions, words, numbers and other characters, each with the space before it.
// Source: Radford et al. 2019, encoder.py; the same as ByteLevel of `tokenizers`.
extern const std::string kGpt2Pattern;

}  // namespace stoker::data
