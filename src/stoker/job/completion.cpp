// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/completion.h"

#include <algorithm>

#include "stoker/models/registry.h"
#include "stoker/train/settings.h"

namespace stoker::job {
namespace {

std::vector<std::string> values_of(const train::Setting& setting) {
  std::vector<std::string> values;
  if (setting.key == "model") {
    for (const models::ModelInfo& model : models::known_models()) {
      values.push_back(model.name);
    }
  } else if (setting.key == "device") {
    values = {"auto", "cpu", "cuda"};
  } else if (setting.values.find("...") == std::string::npos && setting.values.find('|') != std::string::npos) {
    for (std::size_t start = 0; start <= setting.values.size();) {
      const std::size_t bar = std::min(setting.values.find('|', start), setting.values.size());
      values.push_back(setting.values.substr(start, bar - start));
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
      for (const train::Setting& each : train::settings()) {
        candidates.push_back(std::string(each.key) + "=");
      }
      candidates.insert(candidates.end(), {"run=", "plan=", "--config", "--quiet", "--json"});
    } else {
      const auto all = train::settings();
      const auto found = std::ranges::find(all, std::string_view(last).substr(0, equals), &train::Setting::key);
      if (found != all.end()) {
        for (const std::string& value : values_of(*found)) {
          candidates.push_back(last.substr(0, equals + 1) + value);
        }
      }
    }
  }
  std::erase_if(candidates, [&](const std::string& each) { return !each.starts_with(last); });
  return candidates;
}

}  // namespace stoker::job
