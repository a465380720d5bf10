// SPDX-License-Identifier: Apache-2.0
// Where a tokenizer.json cuts text into words: by regular expressions as Oniguruma understands them, the library that
// `tokenizers` itself cuts with. Used by the byte-level BPE. A made rule may be used from any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::data {

// What becomes of the matches of an expression and of the gaps between them; either way pieces end where they meet.
enum class Keep { kAll, kMatches, kGaps };

class SplitRule {
 public:
  // pattern is UTF-8. DataError, with Oniguruma's words, for one that is no regular expression.
  SplitRule(const std::string& pattern, Keep keep);

  // Hands the pieces of text to take, in order; none is empty. text is UTF-8. DataError if the expression gives up.
  void split(std::string_view text, const std::function<void(std::string_view)>& take) const;
  // The offset of the first match at or after from, and its end; empty where there is none.
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

// The first character that Oniguruma's Unicode tables do not know, and that newer tables may call a letter or a number:
// the words around it might end elsewhere than `tokenizers` ends them. Emoji and noncharacters are never that.
[[nodiscard]] std::optional<std::size_t> first_unassigned(std::string_view text);
// "Oniguruma 6.9.8", for messages about the above.
[[nodiscard]] std::string split_library();

// An expression that matches this text alone.
[[nodiscard]] std::string literal_pattern(std::string_view text);

// GPT-2's own expression: the contractions of English, words, numbers and other characters, each with the space before.
// Source: Radford et al. 2019, encoder.py; ByteLevel of `tokenizers` has the same.
extern const std::string kGpt2Pattern;

}  // namespace stoker::data
