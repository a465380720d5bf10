// SPDX-License-Identifier: Apache-2.0
// An option: a value that a person can set, with its type and range, its default with the reason, and one line of help.
// The engine lists its options in train/plan_options.cpp, each task in its options.cpp; parsing, help, completion, a
// plan's rows and its file all read these lists. Values; thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace stoker::core {

// kBehaviour: changes the result of training. kPerformance: changes only its speed.
enum class OptionGroup { kBehaviour, kPerformance };

// The types of values, with the allowed values.
struct Whole {
  std::int64_t low, high;
};
struct Real {
  double low, high;
};
struct Duration {  // "90s", "15m", "1.5h"; stored in seconds
  double high;     // seconds
};
struct Bytes {};  // "512MiB", "2GB", "1.5G"; stored in bytes
struct Flag {};   // on, off
struct Choice {
  std::vector<std::string> names;
};
struct Text {
  std::string expected;  // for help and errors, "a column's name"
  bool (*valid)(std::string_view) = nullptr;
};
struct File {                           // a file or folder, unless it is one of the words
  std::string expected;                 // for help and errors
  std::vector<std::string> words = {};  // "bytes", "characters"
  bool may_be_empty = true;
};
using OptionType = std::variant<Whole, Real, Duration, Bytes, Flag, Choice, Text, File>;

// The value of an option that nobody sets.
struct Default {
  std::optional<std::string> value;  // the same in every run; none: it depends on model, data or device
  std::string reason;                // the reason for the value; or what it depends on, as shown in the help
};
// "10", "a gradient scaler skips a few".
[[nodiscard]] Default always(std::string value, std::string reason);
// "by the model's recipe".
[[nodiscard]] Default depends(std::string on_what);

struct Option {
  std::string key;  // "weight_decay"
  OptionGroup group = OptionGroup::kBehaviour;
  OptionType type;
  Default fallback;
  std::string help;                    // one line
  std::vector<std::string> also = {};  // names in other tools, for "did you mean"
};

// The allowed values for the help: "1 ... 1048576", "on|off".
[[nodiscard]] std::string range_text(const OptionType& type);
// The default for the help: "10 (a gradient scaler skips a few)", "by the model's recipe".
[[nodiscard]] std::string default_text(const Option& option);

using OptionValue = std::variant<std::int64_t, double, bool, std::string>;
// ConfigError that names key, range and text.
[[nodiscard]] OptionValue parse_option(const Option& option, std::string_view text);
// Text that parse_option() reads back exactly.
[[nodiscard]] std::string option_text(const OptionValue& value);

// Null for an unknown key.
[[nodiscard]] const Option* find_option(const std::vector<Option>& options, std::string_view key);
// The key probably meant by an unknown one, by its spelling or by another tool's name for it; empty: none.
[[nodiscard]] std::string near_option(std::string_view key, const std::vector<Option>& options);

// Values of a task's options as checked text, by key: so a plan carries values that it does not know.
using TaskValues = std::map<std::string, std::string, std::less<>>;

}  // namespace stoker::core
