// SPDX-License-Identifier: Apache-2.0
#include "stoker/memory/recompute_choice.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::memory {
namespace {

constexpr std::string_view kEvery = "every:";

std::optional<std::vector<std::string>> parse_names(std::string_view text) {
  std::vector<std::string> names;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::string_view name = text.substr(start, end - start);
    if (name.empty() || name.find_first_of(" \t:=") != name.npos) {
      return std::nullopt;
    }
    names.emplace_back(name);
    start = end + 1;
  }
  return names;
}

std::optional<RecomputeChoice> try_parse(std::string_view text) {
  using Kind = RecomputeChoice::Kind;
  if (text == "none" || text == "all") {
    return RecomputeChoice{.kind = text == "all" ? Kind::kAll : Kind::kNone};
  }
  if (text.starts_with(kEvery)) {
    const std::string_view digits = text.substr(kEvery.size());
    int every = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), every);
    if (error != std::errc() || end != digits.data() + digits.size() || every < 1) {
      return std::nullopt;
    }
    return RecomputeChoice{.kind = Kind::kEvery, .every = every};
  }
  if (auto names = parse_names(text)) {
    return RecomputeChoice{.kind = Kind::kNames, .names = *std::move(names)};
  }
  return std::nullopt;
}

}  // namespace

RecomputeChoice parse_recompute(std::string_view text) {
  if (auto choice = try_parse(text)) {
    return *std::move(choice);
  }
  fail<ConfigError>("memory.recompute",
                    "recompute must be none, all, every:N, or names of segments and of their parts "
                    "(stem,layer1.0,attention), got \"{}\"",
                    printable(text));
}

bool is_recompute(std::string_view text) { return try_parse(text).has_value(); }

}  // namespace stoker::memory
