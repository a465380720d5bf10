// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/request.h"

#include <toml++/toml.h>

#include <map>
#include <optional>
#include <sstream>

#include "stoker/base/byte_name.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"

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

// Bytes of a path that TOML holds as text.
std::string path_of(std::string_view key, const std::string& text) {
  const std::optional<std::string> bytes = byte_name_from_text(text);
  if (!bytes) {
    fail<ConfigError>(kWhere, "{} has \"{}\", where hexadecimal digits must follow hex:", key, printable(text));
  }
  return *bytes;
}

bool is_path(std::string_view key) { return key == "data" || key == "run" || key == "plan" || key == "weights"; }

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
  fail<ConfigError>(kWhere, "{} is neither text, number, on/off nor a list", key);
}

// Tables become dotted keys: [optimizer] momentum = 0.9 is optimizer.momentum=0.9.
void apply_table(Request& request, const toml::table& table, const std::string& prefix, const std::string& file) {
  for (const auto& [key, node] : table) {
    std::string name = prefix + std::string(key.str());
    if (name == "optimizer.name") {  // TOML cannot hold both optimizer = "sgd" and a table [optimizer]
      name = "optimizer";
    }
    if (const auto* inner = node.as_table()) {
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
      apply_table(request, toml::parse(read_text(config), name), "", name);
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
      fail<ConfigError>(kWhere, "{} is given twice: {} and {}; leave one out", printable(first->first),
                        printable(first->second), printable(assignment));
    }
  }
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
    // Keys with a dot are quoted as a whole: they are names of settings, not tables.
    table.insert(key, byte_name_to_text(asked.value));
  }
  std::ostringstream out;
  out << "# What was asked for; `stoker train --config config.toml` asks again.\n" << table << "\n";
  return out.str();
}

}  // namespace stoker::job
