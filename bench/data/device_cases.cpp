// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>

#include <cstring>
#include <string>

#include "measure_cases.h"
#include "stoker/device/backend.h"
#include "stoker/study/paired.h"

namespace stoker::bench {
namespace {

constexpr std::int64_t kBatchBytes = std::int64_t{256} * 224 * 224 * 3;

// Why this machine cannot measure it; empty if it can.
std::string without_device() {
  return device::find_backend(c10::kCUDA) != nullptr ? std::string() : "no CUDA: " + device::missing_reason(c10::kCUDA);
}

}  // namespace

// GB/s of copies of a batch, from page-locked memory to the device, and from memory to memory by one thread.
Json copies(const Words& words) {
  if (const std::string why = without_device(); !why.empty()) {
    return {{"skipped", why}};
  }
  const c10::Device device(c10::kCUDA, 0);
  const at::Tensor pinned = at::empty({kBatchBytes}, at::TensorOptions(at::kByte).pinned_memory(true));
  pinned.fill_(1);
  const at::Tensor there = at::empty({kBatchBytes}, at::TensorOptions(at::kByte).device(device));
  const at::Tensor from = at::empty({kBatchBytes}, at::kByte).fill_(1),
                   to = at::empty({kBatchBytes}, at::kByte).fill_(0);
  study::PairingOptions options;
  options.seconds = words.seconds();
  const study::Paired paired = study::time_in_turns(
      {[&] { there.copy_(pinned, /*non_blocking=*/true); }, [&] { device::backend_for(device).synchronize(device); }},
      {[&] { std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), static_cast<std::size_t>(kBatchBytes)); }},
      options);
  return {{"gb_per_second", 1e-9 * kBatchBytes / paired.first_seconds},
          {"memcpy_gb_per_second", 1e-9 * kBatchBytes / paired.second_seconds}};
}

Json resident(const Words& /*words*/) {
  if (const std::string why = without_device(); !why.empty()) {
    return {{"skipped", why}};
  }
  return {{"waits", "device/ has no resident data set yet"}};
}

}  // namespace stoker::bench
