// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/verdict.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/linalg_vector_norm.h>
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
}

at::Tensor Verdict::decide(const at::Tensor& loss_parts, const std::vector<at::Tensor>& grads,
                           precision::GradScaler& scaler, optim::EmaWeight* averages) {
  const bool clips = options_.clip > 0;
  if (!clips) {
    scaler.check(grads);
  }
  core::VerdictWork work = work_on(loss_parts, scaler, averages);
  if (core::on_host(skipped_)) {
    const at::Tensor norm = clips ? optim::gradient_norm(grads) : core::host_tensor(0, at::kFloat);
    work.single = norm.scalar_type() == at::kFloat;
    const double divisor = core::decide(work, core::host_value(norm));
    return divisor == 1 ? at::Tensor() : core::host_tensor(divisor, norm.scalar_type());
  }
  const at::Tensor norms = clips && !grads.empty() ? optim::gradient_norms(grads) : at::Tensor();
  if (!core::takes_kernels(skipped_) || (norms.defined() && norms.scalar_type() != at::kFloat)) {
    return by_operators(loss_parts, norms, scaler, averages);
  }
  work.norms = data_or_null(norms);
  work.norm_count = norms.defined() ? norms.numel() : 0;
  device::backend_for(skipped_.device()).decide(work, skipped_.device());
  return clips || scaler.scaling() ? divisor_ : at::Tensor();
}

core::VerdictWork Verdict::work_on(const at::Tensor& loss_parts, precision::GradScaler& scaler,
                                   optim::EmaWeight* averages) {
  core::VerdictWork work;
  work.terms = static_cast<int>(loss_parts.numel());
  work.parts = loss_parts.const_data_ptr<double>();
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
at::Tensor Verdict::by_operators(const at::Tensor& loss_parts, const at::Tensor& norms, precision::GradScaler& scaler,
                                 optim::EmaWeight* averages) {
  at::Tensor& found_inf = scaler.found_inf();
  at::Tensor norm, divisor;
  if (norms.defined()) {
    norm = at::linalg_vector_norm(norms, 2);
    optim::mark_non_finite(norm, found_inf);
    norm = scaler.scaling() ? norm / scaler.current_scale() : norm;
    divisor = optim::clip_divisor(norm, options_.clip);
  }
  if (scaler.scaling()) {
    divisor = divisor.defined() ? divisor * scaler.current_scale() : scaler.current_scale();
  }
  const at::Tensor loss = loss_parts.sum().to(at::kFloat).reshape({1});
  optim::mark_non_finite(loss, found_inf);
  at::gt_out(skip_, found_inf, 0);
  skipped_.add_(1).mul_(found_inf);
  std::vector<at::Tensor> row = {loss};
  if (loss_parts.numel() > 1) {
    row.push_back(loss_parts.to(at::kFloat));
  }
  if (options_.clip > 0) {
    row.push_back(norm.defined() ? norm.to(at::kFloat).reshape({1}) : at::zeros_like(loss));
  }
  row.push_back(skipped_);
  if (options_.reports_scale) {
    row.push_back(scaler.current_scale().reshape({1}));
  }
  at::cat_out(scalars_, row);
  if (averages != nullptr) {
    averages->next(found_inf);
  }
  return divisor;
}

}  // namespace stoker::train
