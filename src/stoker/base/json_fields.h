// SPDX-License-Identifier: Apache-2.0
// Fields of a JSON object from a file or a peer that may hold anything: what is missing, or of another type, is empty.
// For nlohmann::json and ordered_json. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stoker {

// Numbers of any kind; none if `json` is no object.
template <typename Json>
std::optional<double> real_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? std::optional(found->template get<double>()) : std::nullopt;
}

// 0 if it is no integer.
template <typename Json>
std::int64_t integer_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? found->template get<std::int64_t>() : 0;
}

template <typename Json>
std::string text_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->template get<std::string>() : "";
}

}  // namespace stoker
