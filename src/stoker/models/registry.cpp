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

struct Registry {
  std::vector<ModelInfo> infos;
  std::vector<std::function<std::unique_ptr<Network>(const ModelOptions&)>> makers;  // parallel to infos

  // The place of a name; infos.size() if there is none.
  [[nodiscard]] std::size_t find(const std::string& name) const {
    return static_cast<std::size_t>(std::ranges::find(infos, name, &ModelInfo::name) - infos.begin());
  }
};

// A new reference model is one line here.
Registry& registry() {
  static Registry all = [] {
    Registry made;
    const auto add = [&](const char* name, const char* text, auto make, const char* wider = "") {
      made.infos.push_back({name, text, wider});
      made.makers.emplace_back(make);
    };
    add("mlp", "two hidden layers of 256 units; the smallest, for quick checks",
        [](auto& options) { return make_mlp(options); });
    add(
        "cnn", "small residual network; the default for images up to 96 pixels", [](auto& o) { return make_cnn(o); },
        "cnn48");
    add(
        "cnn48", "cnn with 48 instead of 32 channels in the stem", [](auto& o) { return make_cnn(o, kCnn48); },
        "cnn64");
    add("cnn64", "cnn with 64 channels in the stem", [](auto& o) { return make_cnn(o, kCnn64); });
    add("resnet18", "11.7 M parameters; the default for larger images", make_resnet18);
    add("resnet34", "21.8 M parameters", make_resnet34);
    add("resnet50", "25.6 M parameters, bottleneck blocks", make_resnet50);
    return made;
  }();
  return all;
}

void check_positive(std::string_view key, int value) {
  if (value < 1) {
    fail<ConfigError>("models.registry", "{} must be at least 1, got {}", key, value);
  }
}

// Its place.
std::size_t check_model_name(const std::string& name) {
  const std::size_t place = registry().find(name);
  if (place == registry().infos.size()) {
    std::vector<std::string> names;
    std::ranges::transform(registry().infos, std::back_inserter(names), &ModelInfo::name);
    fail<ConfigError>("models.registry", "{}", unknown_name("model", name, names));
  }
  return place;
}

}  // namespace

const std::vector<ModelInfo>& known_models() { return registry().infos; }

std::string wider_model(const std::string& name) {
  const std::size_t place = registry().find(name);
  return place < registry().infos.size() ? registry().infos[place].wider : "";
}

bool is_width_of(const std::string& first, const std::string& name) {
  std::string each = first;
  while (!each.empty() && each != name) {
    each = wider_model(each);
  }
  return !each.empty();
}

void add_model(ModelInfo info, std::function<std::unique_ptr<Network>(const ModelOptions&)> make) {
  if (info.name.empty() || registry().find(info.name) < registry().infos.size()) {
    fail<ConfigError>("models.registry", "a model called \"{}\" cannot be added: {}; give it another name",
                      printable(info.name), info.name.empty() ? "the name is empty" : "it is already in use");
  }
  registry().infos.push_back(std::move(info));
  registry().makers.push_back(std::move(make));
}

std::unique_ptr<Network> make_network(const std::string& name, const ModelOptions& options) {
  const std::size_t place = check_model_name(name);
  check_positive("classes", options.classes);
  check_positive("channels", options.channels);
  check_positive("image_size", options.image_size);
  return registry().makers[place](options);
}

}  // namespace stoker::models
