// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/weight_histograms.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/histc.h>
#include <ATen/ops/isfinite.h>

namespace stoker::job {

core::WeightHistograms weight_histograms(const core::Trainable& model, std::int64_t step) {
  constexpr std::int64_t kBins = 64;
  const at::NoGradGuard no_grad;
  core::WeightHistograms result{step, {}};
  for (const core::Parameter& parameter : model.parameters()) {
    const at::Tensor all = parameter.tensor.to(at::kCPU, at::kFloat);  // on CUDA histc is not deterministic
    const at::Tensor values = all.masked_select(at::isfinite(all));
    if (values.numel() == 0) {
      continue;
    }
    const double low = values.min().item<double>(), high = values.max().item<double>();
    core::Histogram histogram{parameter.name, low, high, {}};
    if (low == high) {
      histogram = {parameter.name, low - 0.5, high + 0.5, {static_cast<double>(values.numel())}};
    } else {
      const at::Tensor counts = at::histc(values, kBins, low, high).to(at::kDouble);
      histogram.counts.assign(counts.const_data_ptr<double>(), counts.const_data_ptr<double>() + kBins);
    }
    result.weights.push_back(std::move(histogram));
  }
  return result;
}

}  // namespace stoker::job
