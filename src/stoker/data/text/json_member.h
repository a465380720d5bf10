// SPDX-License-Identifier: Apache-2.0
// A member of a foreign JSON file that is read strictly: it knows its way from the root, so that every error names it.
// Used by the reader of tokenizer.json. One thread at a time; the JSON must outlive it.
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
  // where begins each error ("data.tokenizer"); file is what errors call the file; path is empty for the whole.
  JsonMember(const nlohmann::json& value, std::string_view where, std::string file, std::string path = "");

  // DataError: the member, then why.
  [[noreturn]] void refuse(const std::string& why) const;
  // The value for an error, cut where it is long.
  [[nodiscard]] std::string shown() const;
  [[nodiscard]] const nlohmann::json& value() const { return value_; }
  [[nodiscard]] bool is_null() const;

  // A member of an object, null where there is none; an element of a list.
  [[nodiscard]] JsonMember operator[](const std::string& key) const;
  [[nodiscard]] JsonMember operator[](std::size_t i) const;
  [[nodiscard]] std::size_t size() const;

  // DataError for what is no object, and for a member that is none of known.
  const JsonMember& object(std::initializer_list<std::string_view> known) const;
  // DataError for what is no list, text, true or false; absent is what null means.
  const JsonMember& list() const;
  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] bool flag(std::optional<bool> absent = {}) const;
  // A whole number below end; empty for anything else.
  [[nodiscard]] std::optional<std::size_t> index(std::size_t end) const;
  // DataError, with what it would do, for all but null and the values that do nothing.
  void must_do_nothing(std::string_view what, std::initializer_list<nlohmann::json> idle = {}) const;

 private:
  const nlohmann::json& value_;
  std::string_view where_;
  std::string file_;
  std::string path_;
};

}  // namespace stoker::data
