// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/device_values.h"

#include <ATen/ops/amax.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include <utility>

namespace stoker::train {

DeviceValues::DeviceValues(core::Communicator& ranks, at::Device device, std::int64_t terms,
                           std::vector<at::Tensor> counts)
    : ranks_(ranks), terms_(terms), counts_(std::move(counts)) {
  std::int64_t values = terms_;
  for (const at::Tensor& each : counts_) {
    values += each.numel();
  }
  own_ = at::zeros({values}, at::device(device).dtype(at::kDouble));
  all_ = at::zeros({ranks_.size(), values}, own_.options());
  losses_ = at::zeros({terms_}, own_.options());
}

void DeviceValues::start(const at::Tensor& losses) {
  const at::Tensor place = own_.narrow(0, 0, terms_);
  if (losses.defined()) {
    place.copy_(losses);
  } else {
    place.zero_();
  }
  std::int64_t used = terms_;
  for (const at::Tensor& each : counts_) {
    own_.narrow(0, used, each.numel()).view(each.sizes()).copy_(each);
    used += each.numel();
  }
  pending_ = ranks_.start_exchange(own_, all_);
}

void DeviceValues::wait() {
  if (const auto pending = std::exchange(pending_, nullptr)) {
    pending->wait();
  }
}

const at::Tensor& DeviceValues::losses() {
  at::sum_out(losses_, all_.narrow(1, 0, terms_), at::IntArrayRef{0});
  return losses_;
}

void DeviceValues::keep_counts() {
  std::int64_t used = terms_;
  for (const at::Tensor& each : counts_) {
    each.copy_(at::amax(all_.narrow(1, used, each.numel()), {0}).view(each.sizes()));
    used += each.numel();
  }
}

}  // namespace stoker::train
