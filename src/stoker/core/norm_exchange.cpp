// SPDX-License-Identifier: Apache-2.0
#include "stoker/core/norm_exchange.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include "stoker/base/error.h"

namespace stoker::core {

NormExchange::NormExchange(Communicator& ranks, NormCount norms, at::Device device)
    : ranks_(ranks), per_pass_(2 * norms.norms) {
  own_ = at::zeros({1 + 2 * norms.channels}, at::device(device).dtype(at::kDouble));
  all_ = at::zeros({ranks.size(), own_.numel()}, own_.options());
}

void NormExchange::begin(std::int64_t passes) { left_ = passes * per_pass_; }

at::Tensor NormExchange::gather(const at::Tensor& values) {
  if (left_ == 0) {
    fail<Error>("core.norm_exchange", "a pass computes more batch norms than the {} that the ranks agreed on",
                per_pass_ / 2);
  }
  const at::NoGradGuard no_grad;
  own_.narrow(0, 0, values.numel()).copy_(values);
  exchange();
  return all_.narrow(1, 0, values.numel());
}

void NormExchange::exchange() {
  --left_;  // first: if it fails here, the others have taken part
  if (const auto pending = ranks_.start_exchange(own_, all_)) {
    pending->wait();
  }
}

void NormExchange::skip_pass() { skip_until(left_ - per_pass_); }

void NormExchange::skip_rest() { skip_until(0); }

void NormExchange::skip_until(std::int64_t left) {
  const at::NoGradGuard no_grad;
  if (left_ > left) {
    own_.zero_();
  }
  while (left_ > left) {
    exchange();
  }
}

}  // namespace stoker::core
