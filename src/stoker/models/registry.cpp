// SPDX-License-Identifier: Apache-2.0
#include "stoker/models/registry.h"

#include <algorithm>
#include <functional>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/nearest.h"
#include "stoker/models/cnn.h"
#include "stoker/models/mlp.h"
#include "stoker/models/resnet.h"

namespace stoker::models {
namespace {

struct Entry {
  ModelInfo info;
  std::function<std::unique_ptr<Network>(const ModelOptions&)> make;
};

// A new model is one line here.
const std::vector<Entry>& entries() {
  static const std::vector<Entry> all{
      {{"mlp", "two hidden layers of 256: the smallest, for checks"}, [](auto& options) { return make_mlp(options); }},
      {{"cnn", "small residual network: the default up to 96 pixels"}, [](auto& options) { return make_cnn(options); }},
      {{"resnet18", "11.7 M parameters: the default for larger pictures"}, make_resnet18},
      {{"resnet34", "21.8 M parameters"}, make_resnet34},
      {{"resnet50", "25.6 M parameters, bottleneck blocks"}, make_resnet50},
  };
  return all;
}

void check_positive(std::string_view key, int value) {
  if (value < 1) {
    fail<ConfigError>("models.registry", "{} must be at least 1, got {}", key, value);
  }
}

void check_model_name(const std::string& name) {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) {
    names.push_back(entry.info.name);
  }
  if (std::ranges::find(names, name) == names.end()) {
    fail<ConfigError>("models.registry", "there is no model \"{}\"; did you mean \"{}\"? known: {}", printable(name),
                      nearest(name, names), fmt::join(names, ", "));
  }
}

}  // namespace

const std::vector<ModelInfo>& known_models() {
  static const std::vector<ModelInfo> infos = [] {
    std::vector<ModelInfo> list;
    for (const Entry& entry : entries()) {
      list.push_back(entry.info);
    }
    return list;
  }();
  return infos;
}

std::unique_ptr<Network> make_network(const std::string& name, const ModelOptions& options) {
  check_model_name(name);
  check_positive("classes", options.classes);
  check_positive("channels", options.channels);
  check_positive("image_size", options.image_size);
  return std::ranges::find(entries(), name, [](const Entry& entry) { return entry.info.name; })->make(options);
}

}  // namespace stoker::models
