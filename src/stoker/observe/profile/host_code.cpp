// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/profile/host_code.h"

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

}  // namespace

HostCode host_code(std::span<const HostSample> samples, const NamePlaces& named) {
  std::set<std::uintptr_t> addresses;
  for (const HostSample& sample : samples) {
    addresses.insert(sample.address);
  }
  const auto places = named(std::vector<std::uintptr_t>(addresses.begin(), addresses.end()));
  HostCode code;
  code.samples = static_cast<std::int64_t>(samples.size());
  code.threads = threads_of(samples);
  std::map<std::string, FunctionRow> rows;
  std::map<std::string, std::map<std::pair<std::string, std::int32_t>, std::int64_t>> lines;  // samples, by function
  for (const HostSample& sample : samples) {
    const auto found = places.find(sample.address);
    if (found == places.end()) {
      continue;
    }
    const CodePlace& place = found->second;
    FunctionRow& row = rows[place.function];
    row.function = place.function;
    row.module = place.module;
    row.own = place.own;
    ++row.samples;
    if (place.line > 0) {
      ++lines[place.function][{place.file, place.line}];
    }
  }
  for (auto& [name, row] : rows) {
    if (const auto found = lines.find(name); found != lines.end()) {
      const auto most = std::ranges::max_element(found->second, {}, [](const auto& each) { return each.second; });
      std::tie(row.file, row.line) = most->first;
    }
    code.functions.push_back(std::move(row));
  }
  std::ranges::stable_sort(code.functions, std::greater(), &FunctionRow::samples);
  return code;
}

}  // namespace stoker::observe::profile
