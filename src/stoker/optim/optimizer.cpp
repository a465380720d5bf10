// SPDX-License-Identifier: Apache-2.0
#include "stoker/optim/optimizer.h"

#include <algorithm>

#include "stoker/base/error.h"
#include "stoker/base/nearest.h"
#include "stoker/optim/fused.h"

namespace stoker::optim {
namespace {

void check_range(std::string_view key, double value, double low, double below) {
  if (!(value >= low && value < below)) {
    fail<ConfigError>("optim.optimizer", "{} must be at least {} and below {}, got {}", key, low, below, value);
  }
}

void check(const OptimizerOptions& options) {
  constexpr double kAbsurd = 1e6;
  check_range("weight_decay", options.weight_decay, 0, kAbsurd);
  check_range("momentum", options.momentum, 0, 1);
  check_range("beta1", options.beta1, 0, 1);
  check_range("beta2", options.beta2, 0, 1);
  check_range("eps", options.eps, 0, kAbsurd);
  if (options.nesterov && options.momentum == 0) {
    fail<ConfigError>("optim.optimizer", "nesterov needs a momentum above 0; set momentum=0.9");
  }
}

constexpr std::string_view kWholeStepsOnly = "this optimizer only takes whole steps; use one of make_optimizer()";

}  // namespace

void Optimizer::count_step() { fail<ConfigError>("optim.optimizer", "{}", kWholeStepsOnly); }
void Optimizer::update(const at::Tensor&) { fail<ConfigError>("optim.optimizer", "{}", kWholeStepsOnly); }

core::State Optimizer::whole_state() {
  core::State state;
  save_state(state);
  return state;
}

const std::vector<std::string>& known_optimizers() {
  static const std::vector<std::string> names{"adamw", "adam", "sgd"};
  return names;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                          const std::vector<core::Parameter>& parameters) {
  if (std::ranges::count(known_optimizers(), options.name) == 0) {
    fail<ConfigError>("optim.optimizer", "{}", unknown_name("optimizer", options.name, known_optimizers()));
  }
  check(options);
  return std::make_unique<FusedOptimizer>(options, parameters);
}

}  // namespace stoker::optim
