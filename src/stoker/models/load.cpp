// SPDX-License-Identifier: Apache-2.0
// Network::load: loads the weights of a file into a network, and reports the result.
#include <ATen/core/grad_mode.h>

#include <set>

#include "stoker/base/error.h"
#include "stoker/models/network.h"

namespace stoker::models {
namespace {

constexpr std::size_t kNamesShown = 5;

std::string listed(const std::vector<std::string>& names) {
  const auto last = names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kNamesShown));
  std::string text = fmt::format("{}", fmt::join(names.begin(), last, ", "));
  return names.size() > kNamesShown ? fmt::format("{} and {} more", text, names.size() - kNamesShown) : text;
}

void take(const core::NamedTensor& target, const std::map<std::string, at::Tensor>& weights, LoadReport& report) {
  const auto found = weights.find(target.name);
  if (found == weights.end()) {
    report.missing.push_back(target.name);
  } else if (found->second.sizes() != target.tensor.sizes() || !at::isFloatingType(found->second.scalar_type())) {
    report.wrong_shape.push_back(fmt::format("{}: [{}] in the file, [{}] here", target.name,
                                             fmt::join(found->second.sizes().vec(), ", "),
                                             fmt::join(target.tensor.sizes().vec(), ", ")));
  } else {
    target.tensor.copy_(found->second);
    report.loaded.push_back(target.name);
  }
}

}  // namespace

bool Network::is_head(const std::string& parameter) const {
  for (const core::Parameter& each : parameters_) {
    if (each.name == parameter) {
      return each.segments.front() == segments() - 1;
    }
  }
  return false;
}

LoadReport Network::load(const std::map<std::string, at::Tensor>& file) {
  const at::NoGradGuard no_grad;
  LoadReport report;
  std::map<std::string, at::Tensor> weights;
  for (const auto& [name, tensor] : file) {
    if (const std::string here = read_name_(name); !here.empty()) {
      weights.emplace(here, tensor);
    }
  }
  std::set<std::string> known;
  for (const core::Parameter& parameter : parameters_) {
    const std::size_t loaded = report.loaded.size();
    take({parameter.name, parameter.tensor}, weights, report);
    known.insert(parameter.name);
    report.new_head |= report.loaded.size() == loaded && is_head(parameter.name);
  }
  for (const core::NamedTensor& buffer : buffers_) {
    take(buffer, weights, report);
    known.insert(buffer.name);
  }
  for (const auto& [name, tensor] : weights) {
    if (!known.contains(name)) {
      report.foreign.push_back(name);
    }
  }
  if (report.loaded.empty()) {
    fail<CheckpointError>("models.load",
                          "none of the {} weights fits this network: it has \"{}\" but the file has \"{}\"",
                          file.size(), parameters_.at(0).name, file.empty() ? "" : file.begin()->first);
  }
  return report;
}

std::string LoadReport::text() const {
  if (exact()) {
    return fmt::format("all {} tensors loaded", loaded.size());
  }
  std::string line = fmt::format("{} tensors loaded", loaded.size());
  if (!wrong_shape.empty()) {
    line += fmt::format("; {} with a different shape ({})", wrong_shape.size(), listed(wrong_shape));
  }
  if (!missing.empty()) {
    line += fmt::format("; {} missing ({})", missing.size(), listed(missing));
  }
  if (!foreign.empty()) {
    line += fmt::format("; {} unexpected ({})", foreign.size(), listed(foreign));
  }
  return new_head ? line + "; the head is new and starts untrained" : line;
}

}  // namespace stoker::models
