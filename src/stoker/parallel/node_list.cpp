// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/node_list.h"

#include <charconv>
#include <cstdint>
#include <optional>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::parallel {
namespace {

constexpr std::string_view kWhere = "parallel.node_list";
constexpr std::size_t kMost = 1 << 16;  // nodes: more are a mistake

[[noreturn]] void refuse(std::string_view text) {
  fail<ConfigError>(kWhere, "\"{}\" is no list of Slurm, such as n[1-3,07],gpu5 for nodes or 2(x3),1 for tasks",
                    printable(text));
}

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  return whole ? std::optional(number) : std::nullopt;
}

// The parts between commas that are outside of brackets.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  bool inside = false;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && !inside)) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    } else if (text[i] == '[' || text[i] == ']') {
      inside = text[i] == '[';
    }
  }
  return parts;
}

// "3" or "1-12" or "007-012", whose numbers keep their width.
void add_range(std::vector<std::string>& names, std::string_view range, std::string_view whole) {
  const std::size_t dash = range.find('-');
  const std::string_view from = range.substr(0, dash), to = dash == range.npos ? from : range.substr(dash + 1);
  const auto first = number_in(from), last = number_in(to);
  if (!first || !last || *last < *first || *last - *first >= kMost) {
    refuse(whole);
  }
  for (std::uint32_t number = *first; number <= *last; ++number) {
    names.push_back(fmt::format("{:0{}}", number, from.size()));
  }
}

// "rack[1-2]n[01-03]x": each bracket multiplies the names so far.
void add_hosts(std::vector<std::string>& hosts, std::string_view part, std::string_view whole) {
  std::vector<std::string> names{""};
  while (!part.empty()) {
    const std::size_t open = part.find('['), close = part.find(']');
    std::vector<std::string> middles;
    if (open != part.npos) {
      if (close == part.npos || close < open) {
        refuse(whole);
      }
      for (const std::string_view range : parts_of(part.substr(open + 1, close - open - 1))) {
        add_range(middles, range, whole);
      }
    } else {
      middles.emplace_back();
    }
    if (names.size() * middles.size() > kMost) {
      refuse(whole);
    }
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const std::string& middle : middles) {
        longer.push_back(name + std::string(part.substr(0, open)) + middle);
      }
    }
    names = std::move(longer);
    part = open == part.npos ? std::string_view() : part.substr(close + 1);
  }
  hosts.insert(hosts.end(), names.begin(), names.end());
}

}  // namespace

std::vector<std::string> hosts_of(std::string_view node_list) {
  std::vector<std::string> hosts;
  for (const std::string_view part : parts_of(node_list)) {
    if (part.empty()) {
      refuse(node_list);
    }
    add_hosts(hosts, part, node_list);
  }
  return hosts;
}

std::vector<int> counts_of(std::string_view tasks_per_node) {
  std::vector<int> counts;
  for (std::string_view part : parts_of(tasks_per_node)) {
    std::uint32_t repeats = 1;
    if (const std::size_t open = part.find("(x"); open != part.npos) {
      const auto times = part.ends_with(')') ? number_in(part.substr(open + 2, part.size() - open - 3)) : std::nullopt;
      if (!times || *times > kMost) {
        refuse(tasks_per_node);
      }
      repeats = *times;
      part = part.substr(0, open);
    }
    const auto tasks = number_in(part);
    if (!tasks || *tasks > kMost) {
      refuse(tasks_per_node);
    }
    counts.insert(counts.end(), repeats, static_cast<int>(*tasks));
  }
  return counts;
}

}  // namespace stoker::parallel
