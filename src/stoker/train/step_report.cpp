// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/step_report.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include <cmath>
#include <vector>

#include "stoker/core/host_value.h"
#include "stoker/optim/clip.h"

namespace stoker::train {
namespace {

void on_the_host(const StepValues& values, at::Tensor& found_inf, at::Tensor& skipped, at::Tensor& scalars) {
  const double* parts = values.loss_parts.const_data_ptr<double>();
  const std::int64_t terms = values.loss_parts.numel();
  double sum = 0;
  for (std::int64_t k = 0; k < terms; ++k) {
    sum += parts[k];
  }
  const auto loss = static_cast<float>(sum);
  if (!std::isfinite(loss)) {
    core::set_host_value(found_inf, 1);
  }
  core::set_host_value(skipped, core::host_value(found_inf) > 0 ? core::host_value(skipped) + 1 : 0);
  float* row = scalars.mutable_data_ptr<float>();
  *row++ = loss;
  for (std::int64_t k = 0; terms > 1 && k < terms; ++k) {
    *row++ = static_cast<float>(parts[k]);
  }
  if (values.grad_norm.defined()) {
    *row++ = static_cast<float>(core::host_value(values.grad_norm));
  }
  *row++ = static_cast<float>(core::host_value(skipped));
  if (values.scale.defined()) {
    *row++ = static_cast<float>(core::host_value(values.scale));
  }
}

void by_operators(const StepValues& values, at::Tensor& found_inf, at::Tensor& skipped, at::Tensor& scalars) {
  const at::Tensor parts = values.loss_parts.to(at::kFloat);
  const at::Tensor loss = values.loss_parts.sum().to(at::kFloat).reshape({1});
  optim::mark_non_finite(loss, found_inf);
  skipped.add_(1).mul_(found_inf);
  std::vector<at::Tensor> row = {loss};
  if (parts.numel() > 1) {
    row.push_back(parts);
  }
  if (values.grad_norm.defined()) {
    row.push_back(values.grad_norm.to(at::kFloat).reshape({1}));
  }
  row.push_back(skipped);
  if (values.scale.defined()) {
    row.push_back(values.scale.reshape({1}));
  }
  at::cat_out(scalars, row);
}

}  // namespace

void judge_and_report(const StepValues& values, at::Tensor& found_inf, at::Tensor& skipped, at::Tensor& scalars) {
  (core::on_host(found_inf) ? on_the_host : by_operators)(values, found_inf, skipped, scalars);
}

}  // namespace stoker::train
