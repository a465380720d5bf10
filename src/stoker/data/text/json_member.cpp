// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/text/json_member.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::data {

JsonMember::JsonMember(const nlohmann::json& value, std::string_view where, std::string file, std::string path)
    : value_(value), where_(where), file_(std::move(file)), path_(std::move(path)) {}

void JsonMember::refuse(const std::string& why) const {
  fail<DataError>(where_, "{}: {} {}", file_, path_.empty() ? "the file" : printable(path_), why);
}

std::string JsonMember::shown() const {
  constexpr std::size_t kLongest = 60;
  const bool large = value_.is_structured() && value_.size() > kLongest;  // too long to write out
  const std::string text = large ? fmt::format("a {} of {}", value_.type_name(), value_.size()) : value_.dump();
  return text.size() > kLongest ? printable(text.substr(0, kLongest)) + "..." : printable(text);
}

bool JsonMember::is_null() const { return value_.is_null(); }

JsonMember JsonMember::operator[](const std::string& key) const {
  static const nlohmann::json none;
  const auto found = value_.find(key);
  return {found == value_.end() ? none : *found, where_, file_, path_.empty() ? key : path_ + "." + key};
}

JsonMember JsonMember::operator[](std::size_t i) const {
  return {value_[i], where_, file_, fmt::format("{}[{}]", path_, i)};
}

std::size_t JsonMember::size() const { return value_.size(); }

const JsonMember& JsonMember::object(std::initializer_list<std::string_view> known) const {
  if (!value_.is_object()) {
    refuse(fmt::format("is {}; expected an object", shown()));
  }
  for (const auto& item : value_.items()) {
    if (std::ranges::find(known, item.key()) == known.end()) {
      const JsonMember stranger = (*this)[item.key()];
      stranger.refuse(fmt::format("is not supported: it is {}; remove it if no id depends on it", stranger.shown()));
    }
  }
  return *this;
}

const JsonMember& JsonMember::list() const {
  if (!value_.is_array()) {
    refuse(fmt::format("is {}; expected a list", shown()));
  }
  return *this;
}

const std::string& JsonMember::text() const {
  if (!value_.is_string()) {
    refuse(fmt::format("is {}; expected a string", shown()));
  }
  return value_.get_ref<const std::string&>();
}

bool JsonMember::flag(std::optional<bool> absent) const {
  if (is_null() && absent) {
    return *absent;
  }
  if (!value_.is_boolean()) {
    refuse(fmt::format("is {}; expected true or false", shown()));
  }
  return value_.get<bool>();
}

std::optional<std::size_t> JsonMember::index(std::size_t end) const {
  const bool negative = value_.is_number_integer() && !value_.is_number_unsigned() && value_.get<std::int64_t>() < 0;
  const bool fits = value_.is_number_integer() && !negative && value_.get<std::uint64_t>() < end;
  return fits ? std::optional(value_.get<std::size_t>()) : std::nullopt;
}

void JsonMember::must_do_nothing(std::string_view what, std::initializer_list<nlohmann::json> idle) const {
  if (!is_null() && std::ranges::find(idle, value_) == idle.end()) {
    refuse(fmt::format("is {}: {}; use a file without it", shown(), what));
  }
}

}  // namespace stoker::data
