// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/class_weights.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::tasks {
namespace {

constexpr std::string_view kWhere = "tasks.class_weights";

bool valid_class_weights(std::string_view text) {
  if (text == "none" || text == "balanced") {
    return true;
  }
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    double value = 0;
    const auto [end, error] = std::from_chars(text.data() + start, text.data() + comma, value);
    if (error != std::errc() || end != text.data() + comma || !(value >= 0) || !std::isfinite(value)) {
      return false;
    }
    start = comma + 1;
  }
  return true;
}

}  // namespace

std::vector<core::OptionRow<ClassOptions>> class_options() {
  constexpr auto kBehaviour = core::OptionGroup::kBehaviour;
  return {
      {&ClassOptions::label_smoothing,
       {"label_smoothing", kBehaviour, core::Real{0, 0.9}, core::depends("set by the recipe"),
        "fraction of the target that is spread over all classes"}},
      {&ClassOptions::class_weights,
       {"class_weights", kBehaviour,
        core::Text{"none, balanced, or one number per class: 1,2.5,1", valid_class_weights},
        core::always("none", "all samples have the same weight"), "weight of each class in the loss"}},
  };
}

std::string class_list(const std::vector<std::string>& classes) {
  constexpr std::size_t kShown = 20;
  std::string text = fmt::format("{} classes: ", classes.size());
  for (std::size_t i = 0; i < std::min(classes.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + printable(classes[i]);
  }
  return classes.size() > kShown ? text + fmt::format(", and {} more", classes.size() - kShown) : text;
}

at::Tensor class_weights(const std::string& text, const std::vector<std::int64_t>& counts) {
  if (text == "none") {
    return {};
  }
  if (text == "balanced") {
    const auto all = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
    std::vector<double> weights;
    for (const std::int64_t count : counts) {
      weights.push_back(count > 0 ? all / (static_cast<double>(counts.size()) * static_cast<double>(count)) : 0);
    }
    return at::tensor(weights, at::kDouble).to(at::kFloat);
  }
  std::vector<double> listed;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    double value = 0;
    std::from_chars(text.data() + start, text.data() + comma, value);
    listed.push_back(value);
    start = comma + 1;
  }
  if (listed.size() != counts.size() || std::ranges::none_of(listed, [](double w) { return w > 0; })) {
    fail<ConfigError>(kWhere, "class_weights has {} numbers for {} classes; give one per class, not all 0",
                      listed.size(), counts.size());
  }
  return at::tensor(listed, at::kDouble).to(at::kFloat);
}

}  // namespace stoker::tasks
