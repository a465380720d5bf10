// SPDX-License-Identifier: Apache-2.0
#include "stoker/core/option.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "stoker/base/fmt.h"
#include "stoker/base/nearest.h"
#include "stoker/base/parse_value.h"

namespace stoker::core {
namespace {

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

constexpr double kHour = 3600;  // seconds

// "90", "90s", "15m", "1.5h" in seconds.
double parse_duration(std::string_view key, std::string_view text, double high) {
  double unit = 1;
  std::string_view number = text;
  if (!text.empty() && (text.back() == 's' || text.back() == 'm' || text.back() == 'h')) {
    unit = text.back() == 's' ? 1 : text.back() == 'm' ? 60 : kHour;
    number.remove_suffix(1);
  }
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (number.empty() || error != std::errc() || end != number.data() + number.size() ||
      !(value >= 0 && unit * value <= high)) {
    refuse_value(key, text, fmt::format("a time such as 90s, 15m or 2h, at most {}h", high / kHour));
  }
  return unit * value;
}

// "512MiB", "2GB", "1.5G", "1000000" in bytes. A unit of one letter is one of 1024, as in Docker and systemd.
std::int64_t parse_bytes(std::string_view key, std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  constexpr double kMost = 1e18;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  double factor = 1;
  if (!unit.empty() && kUnits.find(unit.front()) != std::string_view::npos) {
    const double base = unit.substr(1) == "B" ? 1000 : 1024;
    for (std::size_t i = 0; i <= kUnits.find(unit.front()); ++i) {
      factor *= base;
    }
    unit.remove_prefix(1);
    unit = unit == "B" || unit == "iB" ? "" : unit;
  }
  if (error != std::errc() || !unit.empty() || !(value >= 0 && value * factor <= kMost)) {
    refuse_value(key, text, "a size such as 512MiB, 4GiB or 2GB");
  }
  return static_cast<std::int64_t>(value * factor);
}

// on|off; with other separators where a choice is a bar.
std::string choices_text(const std::vector<std::string>& names) {
  if (std::ranges::find(names, "|") != names.end()) {  // "auto" "," "|"
    return fmt::format("\"{}\"", fmt::join(names, "\" \""));
  }
  return fmt::format("{}", fmt::join(names, "|"));
}

}  // namespace

Default always(std::string value, std::string reason) { return {std::move(value), std::move(reason)}; }
Default depends(std::string on_what) { return {std::nullopt, std::move(on_what)}; }

std::string range_text(const OptionType& type) {
  return std::visit(
      Overloaded{[](const Whole& whole) { return fmt::format("{} ... {}", whole.low, whole.high); },
                 [](const Real& real) { return fmt::format("{} ... {}", real.low, real.high); },
                 [](const Duration&) { return std::string("90s, 15m, 2h"); },
                 [](const Bytes&) { return std::string("512MiB, 4GiB, 2GB"); },
                 [](const Flag&) { return std::string("on|off"); },
                 [](const Choice& choice) { return choices_text(choice.names); },
                 [](const Text& text) { return text.expected; }, [](const File& file) { return file.expected; }},
      type);
}

std::string default_text(const Option& option) {
  if (!option.fallback.value) {
    return option.fallback.reason;
  }
  const std::string& value = *option.fallback.value;
  return value.empty() ? option.fallback.reason : fmt::format("{} ({})", value, option.fallback.reason);
}

OptionValue parse_option(const Option& option, std::string_view text) {
  const std::string& key = option.key;
  return std::visit(
      Overloaded{[&](const Whole& type) -> OptionValue { return parse_whole(key, text, type.low, type.high); },
                 [&](const Real& type) -> OptionValue { return parse_real(key, text, type.low, type.high); },
                 [&](const Duration& type) -> OptionValue { return parse_duration(key, text, type.high); },
                 [&](const Bytes&) -> OptionValue { return parse_bytes(key, text); },
                 [&](const Flag&) -> OptionValue { return parse_flag(key, text); },
                 [&](const Choice& type) -> OptionValue { return parse_choice(key, text, type.names); },
                 [&](const Text& type) -> OptionValue {
                   if (type.valid != nullptr && !type.valid(text)) {
                     refuse_value(key, text, type.expected);
                   }
                   return std::string(text);
                 },
                 [&](const File& type) -> OptionValue {
                   if (text.empty() && !type.may_be_empty) {
                     refuse_value(key, text, type.expected);
                   }
                   return std::string(text);
                 }},
      option.type);
}

std::string option_text(const OptionValue& value) {
  return std::visit(Overloaded{[](std::int64_t whole) { return std::to_string(whole); },
                               [](double real) { return fmt::format("{}", real); },
                               [](bool flag) { return std::string(flag ? "on" : "off"); },
                               [](const std::string& text) { return text; }},
                    value);
}

const Option* find_option(const std::vector<Option>& options, std::string_view key) {
  const auto found = std::ranges::find(options, key, &Option::key);
  return found == options.end() ? nullptr : &*found;
}

std::string near_option(std::string_view key, const std::vector<Option>& options) {
  std::vector<std::string> names;
  std::map<std::string, std::string> keys;  // by name
  for (const Option& each : options) {
    keys.insert_or_assign(each.key, each.key);
    names.push_back(each.key);
  }
  for (const Option& each : options) {  // after all keys, which come first among equals
    for (const std::string& name : each.also) {
      keys.emplace(name, each.key);
      names.push_back(name);
    }
  }
  const std::string near = near_name(key, names);
  return near.empty() ? "" : keys.at(near);
}

}  // namespace stoker::core
