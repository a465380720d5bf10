// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/text/bpe_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/thousands.h"
#include "stoker/base/utf8.h"
#include "stoker/data/text/token_checks.h"

namespace stoker::data {
namespace {

constexpr std::string_view kWhere = "data.tokenizer";
constexpr std::size_t kCachedWords = std::size_t{1} << 18;  // about 30 MB; few words are frequent

// Finds added tokens: leftmost first, then the longest.
class AddedTokens {
 public:
  explicit AddedTokens(std::vector<BpeParts::Added> tokens) : tokens_(std::move(tokens)) {
    std::ranges::stable_sort(tokens_, std::greater(), [](const auto& token) { return token.text.size(); });
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      by_first_byte_[static_cast<unsigned char>(tokens_[i].text.front())].push_back(i);
    }
  }
  // Calls between(piece) for text outside added tokens and token(id) for added tokens, in order.
  template <typename Between, typename Token>
  void walk(std::string_view text, const Between& between, const Token& token) const {
    std::size_t done = 0;
    for (std::size_t at = 0; !tokens_.empty() && at < text.size();) {
      const BpeParts::Added* found = at_place(text, at);
      if (found == nullptr) {
        ++at;
        continue;
      }
      if (done < at) {
        between(text.substr(done, at - done));
      }
      token(found->id);
      at += found->text.size();
      done = at;
    }
    if (done < text.size()) {
      between(text.substr(done));
    }
  }

 private:
  [[nodiscard]] const BpeParts::Added* at_place(std::string_view text, std::size_t at) const {
    for (const std::size_t i : by_first_byte_[static_cast<unsigned char>(text[at])]) {
      if (text.substr(at).starts_with(tokens_[i].text)) {
        return &tokens_[i];
      }
    }
    return nullptr;
  }

  std::vector<BpeParts::Added> tokens_;  // longest first
  std::array<std::vector<std::size_t>, 256> by_first_byte_;
};

class BpeTokenizer : public Tokenizer {
 public:
  explicit BpeTokenizer(BpeParts parts)
      : tokens_(std::move(parts.tokens)),
        pairs_(parts.byte_ids, parts.merges),
        words_(std::move(parts.words)),
        stages_(std::move(parts.stages)),
        first_(std::move(parts.added[0])),
        then_(std::move(parts.added[1])),
        source_(std::move(parts.source)) {}

  [[nodiscard]] std::int64_t size() const override { return std::ssize(tokens_); }
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text) const override {
    constexpr std::size_t kMost = 0x7fffffff;  // offsets in Oniguruma are int
    if (text.size() > kMost) {
      fail<DataError>("data.tokenizer", "a text of {} bytes is too long for a tokenizer.json; the limit is {}",
                      text.size(), kMost);
    }
    check(text);
    Encoding encoding;
    const auto add = [&](std::int32_t id) { encoding.ids.push_back(id); };
    const auto cut = [&](std::string_view piece) { run_stages(piece, 0, encoding); };
    first_.walk(
        text, [&](std::string_view piece) { then_.walk(piece, cut, add); }, add);
    return std::move(encoding.ids);
  }
  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    for (const std::int32_t id : ids) {
      check_id(id, tokens_.size());
      text += tokens_[static_cast<std::size_t>(id)];
    }
    return text;
  }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("byte-level BPE, {} tokens", thousands(size()));
  }
  [[nodiscard]] nlohmann::json to_json() const override {
    return {{"kind", "tokenizer.json"}, {"tokenizer", nlohmann::json::parse(source_)}};
  }

 private:
  struct Encoding {
    std::vector<std::int32_t> ids;
    ByText<std::vector<std::int32_t>> cache;
  };

  void check(std::string_view text) const {
    if (const std::size_t at = first_invalid_utf8(text); at != std::string_view::npos) {
      fail_no_utf8(text, at);
    }
    if (stages_.empty()) {
      return;  // no rule depends on character classes
    }
    if (const auto at = first_unassigned(text)) {
      fail<DataError>(
          kWhere,
          "U+{:04X} at byte offset {} is not in the Unicode tables of {}, so the word boundaries are unknown; "
          "leave it out, or set tokenizer=bytes",
          static_cast<std::uint32_t>(code_point_at(text, *at).value), *at, split_library());
    }
  }

  void run_stages(std::string_view piece, std::size_t stage, Encoding& encoding) const {
    if (stage == stages_.size()) {
      add_word(piece, encoding);
    } else if (const auto* rule = std::get_if<SplitRule>(&stages_[stage])) {
      rule->split(piece, [&](std::string_view part) { run_stages(part, stage + 1, encoding); });
    } else {
      run_stages(piece.starts_with(' ') ? std::string(piece) : " " + std::string(piece), stage + 1, encoding);
    }
  }

  void add_word(std::string_view word, Encoding& encoding) const {
    auto found = encoding.cache.find(word);
    if (found == encoding.cache.end()) {
      std::vector<std::int32_t> ids = ids_of(word);
      if (encoding.cache.size() >= kCachedWords) {
        encoding.ids.insert(encoding.ids.end(), ids.begin(), ids.end());
        return;
      }
      found = encoding.cache.emplace(word, std::move(ids)).first;
    }
    encoding.ids.insert(encoding.ids.end(), found->second.begin(), found->second.end());
  }

  [[nodiscard]] std::vector<std::int32_t> ids_of(std::string_view word) const {
    if (const auto whole = words_.find(word); whole != words_.end()) {
      return {whole->second};
    }
    std::vector<std::int32_t> ids;
    pairs_.encode(word, ids);
    return ids;
  }

  std::vector<std::string> tokens_;
  BytePairs pairs_;
  ByText<std::int32_t> words_;  // empty unless words have priority over merges
  std::vector<std::variant<SplitRule, PrefixSpace>> stages_;
  AddedTokens first_;
  AddedTokens then_;
  std::string source_;
};

}  // namespace

std::unique_ptr<Tokenizer> bpe_tokenizer(BpeParts parts) { return std::make_unique<BpeTokenizer>(std::move(parts)); }

}  // namespace stoker::data
