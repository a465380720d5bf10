// SPDX-License-Identifier: Apache-2.0
#include "stoker/base/parse_value.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker {
namespace {

constexpr std::string_view kWhere = "options";

template <typename T>
T parse_number(std::string_view key, std::string_view text, T low, T high, std::string_view expected) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() ||
      !(value >= low && value <= high)) {  // also rejects NaN
    refuse_value(key, text, expected);
  }
  return value;
}

}  // namespace

void refuse_value(std::string_view key, std::string_view text, std::string_view expected) {
  fail<ConfigError>(kWhere, "{} must be {}, got \"{}\"", key, expected, printable(text));
}

std::int64_t parse_whole(std::string_view key, std::string_view text, std::int64_t low, std::int64_t high) {
  return parse_number(key, text, low, high, fmt::format("an integer from {} to {}", low, high));
}

double parse_real(std::string_view key, std::string_view text, double low, double high) {
  return parse_number(key, text, low, high, fmt::format("a number from {} to {}", low, high));
}

bool parse_flag(std::string_view key, std::string_view text) {
  static constexpr std::array<std::string_view, 4> kOn{"on", "yes", "true", "1"}, kOff{"off", "no", "false", "0"};
  const bool on = std::ranges::find(kOn, text) != kOn.end();
  if (!on && std::ranges::find(kOff, text) == kOff.end()) {
    refuse_value(key, text, "on or off");
  }
  return on;
}

std::string parse_choice(std::string_view key, std::string_view text, const std::vector<std::string>& names) {
  if (std::ranges::find(names, text) == names.end()) {
    const std::string near = near_name(text, names);
    fail<ConfigError>(kWhere, "{} must be one of {}, got \"{}\"{}", key, fmt::join(names, "|"), printable(text),
                      near.empty() ? "" : fmt::format("; did you mean {}={}?", key, near));
  }
  return std::string(text);
}

}  // namespace stoker
