// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/verdict.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "stoker/base/error.h"
#include "stoker/core/events.h"
#include "stoker/core/host_value.h"
#include "stoker/core/step_work.h"
#include "stoker/device/backend.h"
#include "stoker/optim/clip.h"

namespace stoker::train {
namespace {

const float* data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}

}  // namespace

Verdict::Verdict(VerdictOptions options, at::Device device) : options_(std::move(options)), names_{"loss"} {
  if (options_.terms.size() > 1) {
    names_.insert(names_.end(), options_.terms.begin(), options_.terms.end());
  }
  if (options_.clip > 0) {
    names_.emplace_back("grad_norm");
  }
  names_.emplace_back("skipped");
  if (options_.reports_scale) {
    names_.emplace_back("scale");
  }
  if (names_.size() > core::kMaxScalars) {
    fail<ConfigError>("train.step", "{} values per step exceed the limit of {}; use fewer loss terms", names_.size(),
                      core::kMaxScalars);
  }
  const auto on_device = at::TensorOptions(at::kFloat).device(device);
  scalars_ = at::zeros({static_cast<std::int64_t>(names_.size())}, on_device);
  skipped_ = at::zeros({1}, on_device);
  skip_ = at::zeros({1}, on_device.dtype(at::kBool));
  divisor_ = at::empty({}, on_device);
  divisor64_ = at::empty({}, on_device.dtype(at::kDouble));
  zero_ = at::zeros({1}, on_device);
  one_ = at::ones({1}, on_device);
}

void Verdict::look(const at::Tensor& loss_parts, const std::vector<at::Tensor>& grads, precision::GradScaler& scaler) {
  const bool clips = options_.clip > 0;
  seen_ = {};
  seen_.parts = loss_parts;
  if (!clips) {
    scaler.check(grads);
  }
  if (core::on_host(skipped_)) {
    seen_.norm = clips ? optim::gradient_norm(grads) : zero_;
    return;
  }
  if (clips && !grads.empty()) {
    seen_.norms = optim::gradient_norms(grads);
  }
  const at::Tensor& norms = seen_.norms;
  seen_.by_operators = !core::takes_kernels(skipped_) || (norms.defined() && norms.scalar_type() != at::kFloat);
  if (seen_.by_operators) {
    look_by_operators(scaler);
  }
}

double Verdict::norm() const { return options_.clip > 0 ? core::host_value(seen_.norm) : 0; }

void Verdict::replace_norm(double norm) {
  if (options_.clip > 0) {
    core::set_host_value(seen_.norm, norm);
  }
}

at::Tensor Verdict::decide(precision::GradScaler& scaler, optim::EmaWeight* averages) {
  if (seen_.by_operators) {
    return decide_by_operators(scaler, averages);
  }
  core::VerdictWork work = work_on(scaler, averages);
  if (seen_.norm.defined()) {
    work.single = seen_.norm.scalar_type() == at::kFloat;
    const double divisor = core::decide(work, core::host_value(seen_.norm));
    const at::Tensor& result = work.single ? divisor_ : divisor64_;
    core::set_host_value(result, divisor);
    return divisor == 1 ? at::Tensor() : result;
  }
  work.norms = data_or_null(seen_.norms);
  work.norm_count = seen_.norms.defined() ? seen_.norms.numel() : 0;
  device::backend_for(skipped_.device()).decide(work, skipped_.device());
  return options_.clip > 0 || scaler.scaling() ? divisor_ : at::Tensor();
}

core::VerdictWork Verdict::work_on(precision::GradScaler& scaler, optim::EmaWeight* averages) {
  core::VerdictWork work;
  work.terms = static_cast<int>(seen_.parts.numel());
  work.parts = seen_.parts.const_data_ptr<double>();
  work.scale = scaler.scaling() ? scaler.current_scale().const_data_ptr<float>() : nullptr;
  work.reported = options_.reports_scale ? scaler.current_scale().const_data_ptr<float>() : nullptr;
  work.clip = options_.clip;
  work.ema = averages != nullptr ? averages->work() : core::EmaWork();
  work.found_inf = scaler.found_inf().mutable_data_ptr<float>();
  work.skipped = skipped_.mutable_data_ptr<float>();
  work.skip = skip_.mutable_data_ptr<bool>();
  work.scalars = scalars_.mutable_data_ptr<float>();
  work.divisor = divisor_.mutable_data_ptr<float>();
  return work;
}

// The CPU twin of the kernel, for float64 gradients and for tests.
void Verdict::look_by_operators(precision::GradScaler& scaler) {
  at::Tensor& found_inf = scaler.found_inf();
  if (seen_.norms.defined()) {
    const at::Tensor norm = at::linalg_vector_norm(seen_.norms, 2);
    optim::mark_non_finite(norm, found_inf);
    seen_.norm = scaler.scaling() ? norm / scaler.current_scale() : norm;
    seen_.divisor = optim::clip_divisor(seen_.norm, options_.clip);
  }
  if (scaler.scaling()) {
    seen_.divisor = seen_.divisor.defined() ? seen_.divisor * scaler.current_scale() : scaler.current_scale();
  }
  seen_.loss = seen_.parts.sum().to(at::kFloat).reshape({1});
  optim::mark_non_finite(seen_.loss, found_inf);
  seen_.single_parts = seen_.parts.to(at::kFloat);
  if (seen_.norm.defined()) {
    seen_.norm = seen_.norm.to(at::kFloat).reshape({1});
  }
}

at::Tensor Verdict::decide_by_operators(precision::GradScaler& scaler, optim::EmaWeight* averages) {
  const at::Tensor& found_inf = scaler.found_inf();
  at::gt_out(skip_, found_inf, zero_);
  skipped_.add_(one_).mul_(found_inf);
  std::vector<at::Tensor> row = {seen_.loss};
  if (seen_.parts.numel() > 1) {
    row.push_back(seen_.single_parts);
  }
  if (options_.clip > 0) {
    row.push_back(seen_.norm.defined() ? seen_.norm : zero_);
  }
  row.push_back(skipped_);
  if (options_.reports_scale) {
    row.push_back(scaler.current_scale().reshape({1}));
  }
  at::cat_out(scalars_, row);
  if (averages != nullptr) {
    averages->next(found_inf);
  }
  return seen_.divisor;
}

}  // namespace stoker::train
