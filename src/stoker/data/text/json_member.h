// SPDX-License-Identifier: Apache-2.0
// A member of a foreign JSON file that is read strictly. It knows its path from the root, so every error names it. Used
// by the reader of tokenizer.json. One thread at a time; the JSON must outlive it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace stoker::data {

class JsonMember {
 public:
  // where: start of each error ("data.tokenizer"). file: name of the file in errors. path: empty for the root.
  JsonMember(const nlohmann::json& value, std::string_view where, std::string file, std::string path = "");

  // DataError: the member, then the reason.
  [[noreturn]] void refuse(const std::string& why) const;
  // The value for an error; shortened if it is long.
  [[nodiscard]] std::string shown() const;
  [[nodiscard]] const nlohmann::json& value() const { return value_; }
  [[nodiscard]] bool is_null() const;

  // A member of an object (null if missing); an element of a list.
  [[nodiscard]] JsonMember operator[](const std::string& key) const;
  [[nodiscard]] JsonMember operator[](std::size_t i) const;
  [[nodiscard]] std::size_t size() const;

  // DataError if it is not an object, and for a member that is not in known.
  const JsonMember& object(std::initializer_list<std::string_view> known) const;
  // DataError if it is not a list, a string, true or false. absent: the value for null.
  const JsonMember& list() const;
  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] bool flag(std::optional<bool> absent = {}) const;
  // An integer from 0 to end - 1; empty for anything else.
  [[nodiscard]] std::optional<std::size_t> index(std::size_t end) const;
  // DataError, with the effect of the setting, for everything except null and the values in idle.
  void must_do_nothing(std::string_view what, std::initializer_list<nlohmann::json> idle = {}) const;

 private:
  const nlohmann::json& value_;
  std::string_view where_;
  std::string file_;
  std::string path_;
};

}  // namespace stoker::data
