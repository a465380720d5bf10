// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/event_fields.h"

#include <charconv>
#include <cmath>

namespace stoker::observe::trace {
namespace {

// With an exponent, which no profiler of PyTorch writes.
std::optional<std::int64_t> from_real(std::string_view text, int digits) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  value = std::round(value * std::pow(10.0, digits));
  if (error != std::errc{} || end != text.data() + text.size() || !(std::abs(value) < 0x1p62)) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(value);
}

}  // namespace

std::string_view without_quotes(std::string_view json) {
  return json.size() >= 2 && json.front() == '"' ? json.substr(1, json.size() - 2) : json;
}

std::optional<std::int64_t> scaled_number(std::string_view json, int digits) {
  const std::string_view text = without_quotes(json);
  const bool minus = text.starts_with('-');
  std::size_t at = minus ? 1 : 0;
  std::int64_t value = 0;
  const auto add_digit = [&](char c) {
    return !__builtin_mul_overflow(value, 10, &value) && !__builtin_add_overflow(value, c - '0', &value);
  };
  const auto is_digit = [&] { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  const std::size_t first = at;
  for (; is_digit(); ++at) {
    if (!add_digit(text[at])) {
      return std::nullopt;
    }
  }
  if (at == first) {
    return std::nullopt;
  }
  int missing = digits;
  if (at < text.size() && text[at] == '.') {
    for (++at; is_digit() && missing > 0; ++at, --missing) {
      if (!add_digit(text[at])) {
        return std::nullopt;
      }
    }
    const bool up = is_digit() && text[at] >= '5';
    while (is_digit()) {
      ++at;
    }
    if (up && __builtin_add_overflow(value, 1, &value)) {
      return std::nullopt;
    }
  }
  if (at < text.size()) {
    return from_real(text, digits);
  }
  for (; missing > 0; --missing) {
    if (!add_digit('0')) {
      return std::nullopt;
    }
  }
  return minus ? -value : value;
}

}  // namespace stoker::observe::trace
