// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/request.h"

#include <toml++/toml.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include "stoker/base/byte_name.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/tasks/named_file.h"
#include "stoker/train/plan_options.h"

namespace stoker::job {
namespace {

constexpr std::string_view kWhere = "job.config";

void apply(Request& request, std::string_view key, const std::string& value, core::Origin origin) {
  if (key == "data") {
    request.data = value;
  } else if (key == "run") {
    request.run = value;
  } else if (key == "plan") {
    request.plan_file = value;
  } else {
    request.options.set(key, value, origin);
    if (key == "task" && value != "auto") {
      (void)tasks::task_kind(value);
    }
    if (key == "model" && value != "auto") {
      tasks::check_model_name(value);
    }
  }
}

// The bytes of a path that is stored as text in TOML.
std::string path_of(std::string_view key, const std::string& text) {
  const std::optional<std::string> bytes = byte_name_from_text(text);
  if (!bytes) {
    fail<ConfigError>(kWhere, "{} must have hexadecimal digits after hex:, got \"{}\"", key, printable(text));
  }
  return *bytes;
}

// The options whose value is a file or folder.
std::vector<core::Option> file_options() {
  std::vector<core::Option> all = train::plan_options().options();
  const std::vector<core::Option> own = tasks::all_task_options();
  all.insert(all.end(), own.begin(), own.end());
  std::erase_if(all, [](const core::Option& each) { return !std::holds_alternative<core::File>(each.type); });
  return all;
}

bool is_path(std::string_view key) {
  return key == "data" || key == "run" || key == "plan" || core::find_option(file_options(), key) != nullptr;
}

// A TOML value as the text that key=value would have.
std::string text_of(const toml::node& node, std::string_view key) {
  if (const auto* text = node.as_string()) {
    return text->get();
  }
  if (const auto* whole = node.as_integer()) {
    return std::to_string(whole->get());
  }
  if (const auto* real = node.as_floating_point()) {
    return fmt::format("{}", real->get());
  }
  if (const auto* flag = node.as_boolean()) {
    return flag->get() ? "on" : "off";
  }
  if (const auto* list = node.as_array()) {
    std::string joined;
    for (const toml::node& each : *list) {
      joined += (joined.empty() ? "" : ",") + text_of(each, key);
    }
    return joined;
  }
  fail<ConfigError>(kWhere, "{} must be text, a number, on/off or a list", key);
}

// The position after the closing quote of the text that starts at `from`.
std::size_t behind_quotes(std::string_view toml, std::size_t from) {
  const char quote = toml[from];
  const std::string three(3, quote);
  const std::string_view end = toml.substr(from).starts_with(three) ? std::string_view(three) : toml.substr(from, 1);
  for (std::size_t i = from + end.size(); i < toml.size(); ++i) {
    if (quote == '"' && toml[i] == '\\') {
      ++i;
    } else if (toml.substr(i).starts_with(end)) {
      return i + end.size();
    }
  }
  return toml.size();
}

// toml++ limits the nesting of values, but not the number of dots in a key: the table of a key with a hundred thousand
// dots would overflow the stack when it is destroyed.
bool has_deep_key(std::string_view toml) {
  constexpr int kMostDots = 16;  // no option has more than one
  int dots = 0;
  for (std::size_t i = 0; i < toml.size();) {
    const char c = toml[i];
    if (c == '"' || c == '\'') {
      i = behind_quotes(toml, i);
      continue;
    }
    i = c == '#' ? std::min(toml.find('\n', i), toml.size()) : i + 1;
    if (c == '.' && ++dots > kMostDots) {
      return true;
    }
    if (std::string_view("#,=[]{}\n").find(c) != std::string_view::npos) {
      dots = 0;
    }
  }
  return false;
}

toml::table parse_config(const std::filesystem::path& config, const std::string& name) {
  const std::string text = read_text(config);
  if (has_deep_key(text)) {
    fail<ConfigError>(kWhere, "{}: has a key with too many dots; `stoker train --help` lists the keys", name);
  }
  return toml::parse(text, name);
}

// Tables become dotted keys: [optimizer] momentum = 0.9 is optimizer.momentum=0.9.
void apply_table(Request& request, const toml::table& table, const std::string& prefix, const std::string& file) {
  for (const auto& [key, node] : table) {
    std::string name = prefix + std::string(key.str());
    if (name == "optimizer.name") {  // TOML cannot hold both optimizer = "sgd" and a table [optimizer]
      name = "optimizer";
    }
    if (const auto* inner = node.as_table(); inner != nullptr && prefix.empty()) {
      apply_table(request, *inner, name + ".", file);
      continue;
    }
    try {
      const std::string text = text_of(node, name);
      apply(request, name, is_path(name) ? path_of(name, text) : text, core::Origin::kConfig);
    } catch (const ConfigError& error) {
      fail<ConfigError>(kWhere, "{}, line {}: {}", file, node.source().begin.line, error.what());
    }
  }
}

}  // namespace

Request make_request(const std::filesystem::path& config, const std::vector<std::string>& assignments) {
  Request request;
  if (!config.empty()) {
    const std::string name = printable(config.native());
    try {
      apply_table(request, parse_config(config, name), "", name);
    } catch (const DataError& error) {
      fail<ConfigError>(kWhere, "{}", error.what());
    } catch (const toml::parse_error& error) {
      fail<ConfigError>(kWhere, "{}, line {}: {}", name, error.source().begin.line, error.description());
    }
  }
  for (const std::string& assignment : assignments) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0) {
      fail<ConfigError>(kWhere, "expected key=value, got \"{}\"", printable(assignment));
    }
    apply(request, assignment.substr(0, equals), assignment.substr(equals + 1), core::Origin::kCommandLine);
  }
  return request;
}

void check_given_once(const std::vector<std::string>& assignments) {
  std::map<std::string, std::string> seen;  // key to the whole word
  for (const std::string& assignment : assignments) {
    const auto [first, fresh] = seen.emplace(assignment.substr(0, assignment.find('=')), assignment);
    if (!fresh) {
      fail<ConfigError>(kWhere, "{} is given twice: {} and {}; remove one", printable(first->first),
                        printable(first->second), printable(assignment));
    }
  }
}

Request with_whole_paths(Request request) {
  for (const core::Option& option : file_options()) {
    const auto& words = std::get<core::File>(option.type).words;
    const auto* given = request.options.find(option.key);
    if (given != nullptr && !given->value.empty() && std::ranges::find(words, given->value) == words.end()) {
      request.options.set(option.key, tasks::whole_path(given->value, request.data).native(), given->origin);
    }
  }
  return request;
}

std::string request_to_toml(const Request& request) {
  toml::table table;
  const auto put_path = [&](const char* key, const std::filesystem::path& path) {
    table.insert(key, byte_name_to_text(std::filesystem::absolute(path).lexically_normal().native()));
  };
  put_path("data", request.data);
  if (!request.plan_file.empty()) {
    put_path("plan", request.plan_file);
  }
  for (const auto& [key, asked] : request.options.all()) {
    // Keys with a dot are quoted as a whole: they are names of options, not tables.
    table.insert(key, byte_name_to_text(asked.value));
  }
  for (const std::string& key : request.options.autos()) {
    table.insert(key, "auto");
  }
  std::ostringstream out;
  out << "# The options of this run; `stoker train --config config.toml` uses them again.\n" << table << "\n";
  return out.str();
}

}  // namespace stoker::job
