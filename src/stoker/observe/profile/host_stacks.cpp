// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/profile/host_stacks.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <utility>

#include "stoker/base/fmt.h"

namespace stoker::observe::profile {
namespace {

std::string name_of(std::int32_t thread) {
  std::ifstream file(fmt::format("/proc/self/task/{}/comm", thread));
  std::string name;
  std::getline(file, name);
  return name.empty() ? "(ended)" : name;
}

std::vector<ThreadRow> threads_of(std::span<const HostSample> samples) {
  std::map<std::int32_t, std::int64_t> by_number;
  for (const HostSample& each : samples) {
    ++by_number[each.thread];
  }
  std::map<std::string, std::int64_t> by_name;
  for (const auto& [thread, count] : by_number) {
    by_name[name_of(thread)] += count;
  }
  std::vector<ThreadRow> rows;
  for (const auto& [name, count] : by_name) {
    rows.push_back({name, count});
  }
  std::ranges::stable_sort(rows, std::greater(), &ThreadRow::samples);
  return rows;
}

// Of a caller the address behind the call is known, which may belong to the next line or function.
std::uintptr_t code_address(const HostSample& sample, std::size_t frame) {
  return sample.frames[frame] - (frame == 0 ? 0 : 1);
}

}  // namespace

HostStacks host_stacks(std::span<const HostSample> samples, const NamePlaces& named) {
  std::set<std::uintptr_t> addresses;
  for (const HostSample& sample : samples) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(sample.depth); ++i) {
      addresses.insert(code_address(sample, i));
    }
  }
  const auto places = named(std::vector<std::uintptr_t>(addresses.begin(), addresses.end()));
  HostStacks stacks;
  stacks.samples = static_cast<std::int64_t>(samples.size());
  stacks.threads = threads_of(samples);
  std::map<std::string, FunctionRow> rows;
  std::map<std::string, std::map<std::pair<std::string, std::int32_t>, std::int64_t>> lines;  // own samples by function
  for (const HostSample& sample : samples) {
    bool charged = false;
    std::set<std::string> seen;  // a function that calls itself counts once
    for (std::size_t i = 0; i < static_cast<std::size_t>(sample.depth); ++i) {
      const auto found = places.find(code_address(sample, i));
      if (found == places.end() || found->second.function.empty()) {
        continue;
      }
      const CodePlace& place = found->second;
      FunctionRow& row = rows[place.function];
      row.function = place.function;
      row.module = place.module;
      row.own = place.own;
      row.total += seen.insert(place.function).second ? 1 : 0;
      row.self += i == 0 ? 1 : 0;
      if (place.own && !std::exchange(charged, true)) {
        ++row.charged;
      }
      if (place.line > 0) {
        lines[place.function][{place.file, place.line}] += i == 0 ? 1000 : 1;  // calls only break ties
      }
    }
  }
  for (auto& [name, row] : rows) {
    if (const auto found = lines.find(name); found != lines.end()) {
      const auto most = std::ranges::max_element(found->second, {}, [](const auto& each) { return each.second; });
      std::tie(row.file, row.line) = most->first;
    }
    stacks.functions.push_back(std::move(row));
  }
  std::ranges::stable_sort(stacks.functions, std::greater(),
                           [](const FunctionRow& row) { return std::pair(row.self, row.total); });
  return stacks;
}

}  // namespace stoker::observe::profile
