// SPDX-License-Identifier: Apache-2.0
#include "stoker/core/stateful.h"

#include <ATen/core/grad_mode.h>

#include "stoker/base/error.h"
#include "stoker/core/text.h"

namespace stoker::core {

const at::Tensor& State::tensor(const std::string& name) const {
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    fail<CheckpointError>("core.state", "the checkpoint has no tensor \"{}\"", name);
  }
  return found->second;
}

std::int64_t State::integer(const std::string& name) const {
  const auto found = numbers.find(name);
  if (found == numbers.end() || !std::holds_alternative<std::int64_t>(found->second)) {
    fail<CheckpointError>("core.state", "the checkpoint has no integer \"{}\"", name);
  }
  return std::get<std::int64_t>(found->second);
}

double State::real(const std::string& name) const {
  const auto found = numbers.find(name);
  if (found == numbers.end()) {
    fail<CheckpointError>("core.state", "the checkpoint has no number \"{}\"", name);
  }
  return std::visit([](auto value) { return static_cast<double>(value); }, found->second);
}

void restore_tensor(at::Tensor target, const State& state, const std::string& name) {
  const at::Tensor& source = state.tensor(name);
  if (source.sizes() != target.sizes() || source.scalar_type() != target.scalar_type()) {
    fail<CheckpointError>("core.state", "\"{}\" is {} in the checkpoint, {} here", name, describe(source),
                          describe(target));
  }
  const at::NoGradGuard no_grad;
  target.copy_(source);
}

}  // namespace stoker::core
