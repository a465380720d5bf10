// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/pass_loss.h"

#include "stoker/base/error.h"
#include "stoker/core/fused_loss.h"
#include "stoker/core/host_value.h"
#include "stoker/device/backend.h"

namespace stoker::train {

core::LossTerms loss_of_pass(const core::Trainable& model, const core::TensorList& outputs, const core::Batch& part,
                             std::size_t names) {
  core::LossTerms terms = model.loss(outputs, part);
  if (terms.size() != names) {  // the verdict reports one value per name
    fail<ConfigError>("train.step", "loss() has {} terms but loss_names() has {} names; return one name per term",
                      terms.size(), names);
  }
  return terms;
}

core::NormalisedLoss normalise_pass(const core::LossTerms& terms, const core::Normalisers& normalisers,
                                    const at::Tensor& scale, at::Device device) {
  core::DivideTerms divide;
  if (core::takes_kernels(normalisers)) {
    divide = [device](const core::LossWork& work) { device::backend_for(device).divide_terms(work, device); };
  }
  return core::normalise(terms, normalisers, scale, divide);
}

}  // namespace stoker::train
