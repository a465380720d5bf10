// SPDX-License-Identifier: Apache-2.0
// The verdict on a step before weights change: whether loss and gradients are finite, how many steps in a row were not,
// the divisor of the gradients for the optimizer, and the row of values that the step reports. Called by train::Step;
// one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "stoker/optim/ema_weight.h"
#include "stoker/precision/grad_scaler.h"

namespace stoker::core {
struct VerdictWork;
}

namespace stoker::train {

struct VerdictOptions {
  std::vector<std::string> terms;  // names of the loss terms
  double clip = 0;                 // largest norm of the gradients; 0: off
  bool reports_scale = false;
};

class Verdict {
 public:
  // ConfigError for more terms than a step can report.
  Verdict(VerdictOptions options, at::Device device);

  // The part that needs memory: looks at the loss, float64 [terms], and at the gradients of the whole global batch,
  // multiplied by the scaler's scale; they stay scaled. Writes only the scaler's found_inf. May be repeated.
  void look(const at::Tensor& loss_parts, const std::vector<at::Tensor>& grads, precision::GradScaler& scaler);
  // After look(), on a CPU: the norm of these gradients, still scaled; 0 without clipping. Stages of a pipeline look at
  // their own gradients, and replace their norm by that of all.
  [[nodiscard]] double norm() const;
  void replace_norm(double norm);
  // After look(). Raises the scaler's found_inf if the loss as float32, or a gradient, is not finite. Then sets skip(),
  // scalars() and, unless null, the weight of the averages. On a CPU the few numbers are computed on the host, on a GPU
  // by one kernel (by operators for float64 gradients); nothing waits, and no tensor is allocated but by operators.
  // Returns the divisor of the gradients for Optimizer::step: 0-dim; undefined if it is known to be 1.
  at::Tensor decide(precision::GradScaler& scaler, optim::EmaWeight* averages);

  // All on the device. names: "loss"; the terms if they are several; "grad_norm"; "skipped"; "scale".
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] const at::Tensor& scalars() const { return scalars_; }  // float32 [names]
  [[nodiscard]] const at::Tensor& skip() const { return skip_; }        // bool [1]: the step changes nothing
  [[nodiscard]] const at::Tensor& skipped() const { return skipped_; }  // float32 [1]: skipped steps in a row

 private:
  // What look() found, for decide().
  struct Seen {
    at::Tensor parts;  // the loss
    at::Tensor norm;   // on the host: of all gradients together
    at::Tensor norms;  // elsewhere: of each gradient
    bool by_operators = false;
    at::Tensor loss, divisor;  // by operators; also norm, then of the true gradients
    at::Tensor single_parts;   // by operators: parts as float32
  };
  // Everything except the norm.
  [[nodiscard]] core::VerdictWork work_on(precision::GradScaler& scaler, optim::EmaWeight* averages);
  void look_by_operators(precision::GradScaler& scaler);
  at::Tensor decide_by_operators(precision::GradScaler& scaler, optim::EmaWeight* averages);

  VerdictOptions options_;
  std::vector<std::string> names_;
  at::Tensor scalars_, skip_, skipped_;
  at::Tensor divisor_;     // float32 0-dim
  at::Tensor divisor64_;   // on a CPU: the same for float64 gradients
  at::Tensor zero_, one_;  // float32 [1]: operators would allocate memory for a number
  Seen seen_;
};

}  // namespace stoker::train
