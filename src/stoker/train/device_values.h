// SPDX-License-Identifier: Apache-2.0
// Losses of a step, and counts among running statistics, of ranks whose model is on a GPU: exchanged between the
// devices, so that no host waits for its device. Used by RankExchange; one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "stoker/core/communicator.h"

namespace stoker::train {

class DeviceValues {
 public:
  // terms: of the loss. counts: whole numbers on the device. ranks outlive it.
  DeviceValues(core::Communicator& ranks, at::Device device, std::int64_t terms, std::vector<at::Tensor> counts);

  // Starts the exchange of this rank's values. losses: float64 [terms]; undefined: 0.
  void start(const at::Tensor& losses);
  // Then: the current stream waits for those of all ranks.
  void wait();
  // Then: float64 [terms], added up.
  [[nodiscard]] const at::Tensor& losses();
  // Then: counts become the largest of all ranks.
  void keep_counts();

 private:
  core::Communicator& ranks_;
  const std::int64_t terms_;
  const std::vector<at::Tensor> counts_;
  at::Tensor own_, all_;  // float64: losses, then counts; a row per rank
  at::Tensor losses_;
  std::unique_ptr<core::Communicator::Pending> pending_;
};

}  // namespace stoker::train
