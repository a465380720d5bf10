// SPDX-License-Identifier: Apache-2.0
// Options together with the fields of the plain struct that holds their values, so that text is parsed once and code
// reads `plan.batch` or `options.image_size`. Used by train::Plan and by each task's struct. Thread-safe: immutable.
#pragma once

#include <iterator>
#include <utility>
#include <variant>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/core/option.h"

namespace stoker::core {

template <typename Values>
using OptionField =
    std::variant<std::int64_t Values::*, double Values::*, bool Values::*, std::string Values::*>;  // by the type

template <typename Values>
struct OptionRow {
  OptionField<Values> field;
  Option option;
};

template <typename Values>
class OptionTable {
 public:
  explicit OptionTable(std::vector<OptionRow<Values>> rows) : rows_(std::move(rows)) {
    for (const OptionRow<Values>& row : rows_) {
      options_.push_back(row.option);
    }
  }

  // In the order of the table.
  [[nodiscard]] const std::vector<Option>& options() const { return options_; }
  [[nodiscard]] const std::vector<OptionRow<Values>>& rows() const { return rows_; }
  [[nodiscard]] bool has(std::string_view key) const { return find_option(options_, key) != nullptr; }

  // Parses the text into the option's field. ConfigError for a key that is not in the table, or a bad text.
  void set(Values& values, std::string_view key, std::string_view text) const {
    const OptionRow<Values>& row = at(key);
    const OptionValue parsed = parse_option(row.option, text);
    std::visit([&]<typename T>(T Values::*field) { values.*field = std::get<T>(parsed); }, row.field);
  }
  // The field as text that set() reads back exactly.
  [[nodiscard]] std::string text(const Values& values, std::string_view key) const {
    return std::visit([&](auto field) { return option_text(values.*field); }, at(key).field);
  }

  // Sets the fields of the given keys, and no others.
  void overlay(Values& values, const TaskValues& given) const {
    for (const auto& [key, value] : given) {
      set(values, key, value);
    }
  }
  // All values, from a plan. ConfigError if one is missing.
  [[nodiscard]] Values parse(const TaskValues& given) const {
    Values values;
    for (const Option& option : options_) {
      const auto found = given.find(option.key);
      if (found == given.end()) {
        fail<ConfigError>("core.options", "the plan lacks \"{}\"", option.key);
      }
      set(values, option.key, found->second);
    }
    return values;
  }

 private:
  [[nodiscard]] const OptionRow<Values>& at(std::string_view key) const {
    for (const OptionRow<Values>& row : rows_) {
      if (row.option.key == key) {
        return row;
      }
    }
    fail<ConfigError>("core.options", "there is no option \"{}\"", key);
  }

  std::vector<OptionRow<Values>> rows_;
  std::vector<Option> options_;
};

// Rows of a struct that Values derives from, as rows of Values: how tasks share options.
template <typename Values, typename Base>
void append_rows(std::vector<OptionRow<Values>>& rows, std::vector<OptionRow<Base>> more) {
  for (OptionRow<Base>& row : more) {
    const OptionField<Values> field = std::visit(
        []<typename T>(T Base::*base) -> OptionField<Values> { return static_cast<T Values::*>(base); }, row.field);
    rows.push_back({field, std::move(row.option)});
  }
}

}  // namespace stoker::core
