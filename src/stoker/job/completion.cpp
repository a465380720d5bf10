// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/completion.h"

#include <algorithm>
#include <utility>

#include "stoker/tasks/registry.h"
#include "stoker/train/settings.h"

namespace stoker::job {
namespace {

// Keys and what help says may be given for each.
std::vector<std::pair<std::string, std::string>> keys() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const train::Setting& each : train::settings()) {
    all.emplace_back(each.key, each.values);
  }
  for (const core::TaskSetting& each : tasks::all_task_settings()) {
    all.emplace_back(each.key, each.values);
  }
  return all;
}

std::vector<std::string> values_of(const std::string& key, const std::string& choices) {
  std::vector<std::string> values;
  if (key == "task") {
    for (const tasks::TaskKind& kind : tasks::known_tasks()) {
      values.push_back(kind.name);
    }
  } else if (key == "model") {
    for (const tasks::TaskKind& kind : tasks::known_tasks()) {
      values.insert(values.end(), kind.models.begin(), kind.models.end());
    }
  } else if (key == "device") {
    values = {"auto", "cpu", "cuda"};
  } else if (choices.find("...") == std::string::npos && choices.find('|') != std::string::npos) {
    for (std::size_t start = 0; start <= choices.size();) {
      const std::size_t bar = std::min(choices.find('|', start), choices.size());
      values.push_back(choices.substr(start, bar - start));
      start = bar + 1;
    }
  }
  return values;
}

}  // namespace

std::vector<std::string> complete(const std::vector<std::string>& commands, const std::vector<std::string>& words) {
  const std::string last = words.empty() ? "" : words.back();
  std::vector<std::string> candidates;
  if (words.size() <= 1) {
    candidates = commands;
  } else if (const std::string& command = words.front();
             command == "train" || command == "plan" || command == "resume") {
    const std::size_t equals = last.find('=');
    if (equals == std::string::npos) {
      for (const auto& [key, choices] : keys()) {
        candidates.push_back(key + "=");
      }
      candidates.insert(candidates.end(), {"run=", "plan=", "--config", "--quiet", "--json"});
    } else {
      const auto all = keys();
      const auto found = std::ranges::find(all, last.substr(0, equals), [](const auto& each) { return each.first; });
      if (found != all.end()) {
        for (const std::string& value : values_of(found->first, found->second)) {
          candidates.push_back(last.substr(0, equals + 1) + value);
        }
      }
    }
  }
  std::erase_if(candidates, [&](const std::string& each) { return !each.starts_with(last); });
  return candidates;
}

}  // namespace stoker::job
