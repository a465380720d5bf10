// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/text/text_split.h"

#include <oniguruma.h>

#include <array>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/utf8.h"

namespace stoker::data {
namespace {

constexpr std::string_view kWhere = "data.tokenizer";

const OnigUChar* at(std::string_view text, std::size_t offset) {
  return reinterpret_cast<const OnigUChar*>(text.data() + offset);
}

std::string words_of(int code, OnigErrorInfo* info) {
  std::array<OnigUChar, ONIG_MAX_ERROR_MESSAGE_LEN> words{};
  const int length = onig_error_code_to_str(words.data(), code, info);
  return {reinterpret_cast<const char*>(words.data()), static_cast<std::size_t>(length)};
}

struct FreeRegion {
  void operator()(OnigRegion* region) const { onig_region_free(region, 1); }
};
using Region = std::unique_ptr<OnigRegion, FreeRegion>;

}  // namespace

const std::string kGpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct SplitRule::Compiled {
  explicit Compiled(const std::string& pattern) {
    static const int ready = [] {
      OnigEncoding utf8 = ONIG_ENCODING_UTF8;
      return onig_initialize(&utf8, 1);
    }();
    OnigErrorInfo info{};
    const int code = ready != ONIG_NORMAL ? ready
                                          : onig_new(&regex, at(pattern, 0), at(pattern, pattern.size()),
                                                     ONIG_OPTION_NONE, ONIG_ENCODING_UTF8, ONIG_SYNTAX_DEFAULT, &info);
    if (code != ONIG_NORMAL) {
      fail<DataError>(kWhere, "'{}' is not a regular expression: {}", printable(pattern), words_of(code, &info));
    }
  }
  ~Compiled() { onig_free(regex); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  [[nodiscard]] std::optional<Match> find(std::string_view text, std::size_t from, OnigRegion* region) const {
    const int code = onig_search(regex, at(text, 0), at(text, text.size()), at(text, from), at(text, text.size()),
                                 region, ONIG_OPTION_NONE);
    if (code == ONIG_MISMATCH) {
      return std::nullopt;
    }
    if (code < 0) {
      fail<DataError>(
          kWhere,
          "the tokenizer's regular expression failed at byte offset {} of a text of {} bytes: {}; split the text", from,
          text.size(), words_of(code, nullptr));
    }
    return Match{static_cast<std::size_t>(region->beg[0]), static_cast<std::size_t>(region->end[0])};
  }

  regex_t* regex = nullptr;
};

SplitRule::SplitRule(const std::string& pattern, Keep keep)
    : compiled_(std::make_shared<const Compiled>(pattern)), keep_(keep) {}

std::optional<SplitRule::Match> SplitRule::find(std::string_view text, std::size_t from) const {
  const Region region(onig_region_new());
  return compiled_->find(text, from, region.get());
}

void SplitRule::split(std::string_view text, const std::function<void(std::string_view)>& take) const {
  const Region region(onig_region_new());
  const auto piece = [&](std::size_t begin, std::size_t end, Keep kind) {
    if (begin < end && (keep_ == Keep::kAll || keep_ == kind)) {
      take(text.substr(begin, end - begin));
    }
  };
  std::size_t done = 0;
  for (std::size_t from = 0; from <= text.size();) {
    const std::optional<Match> match = compiled_->find(text, from, region.get());
    if (!match) {
      break;
    }
    piece(done, match->begin, Keep::kGaps);
    piece(match->begin, match->end, Keep::kMatches);
    done = match->end;
    // An empty match splits, and the search continues after the next character.
    from = match->end > match->begin   ? match->end
           : match->end == text.size() ? text.size() + 1
                                       : match->end + code_point_at(text, match->end).bytes;
  }
  piece(done, text.size(), Keep::kGaps);
}

std::optional<std::size_t> first_unassigned(std::string_view text) {
  static const SplitRule unassigned(R"([\p{Cn}&&[^\p{Extended_Pictographic}\p{Noncharacter_Code_Point}]])", Keep::kAll);
  const auto match = unassigned.find(text, 0);
  return match ? std::optional(match->begin) : std::nullopt;
}

std::string split_library() { return fmt::format("Oniguruma {}", onig_version()); }

std::string literal_pattern(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    pattern += plain ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return pattern;
}

}  // namespace stoker::data
