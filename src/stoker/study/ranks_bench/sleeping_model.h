// SPDX-License-Identifier: Apache-2.0
// A model whose compute sleeps: ranks do not take each other's cores, also where there are more ranks than cores. The
// gradients of its segments arrive one after the other during backward, as those of a real model do. Used by
// `stoker bench ranks` to compare its forecast with a measurement. One thread.
#pragma once

#include <chrono>
#include <vector>

#include "stoker/core/trainable.h"

namespace stoker::study {

struct SleepingOptions {
  int segments = 8;
  std::int64_t values = std::int64_t{1} << 16;              // float32 of each segment's parameter: 256 KiB
  std::chrono::microseconds forward{1000}, backward{2000};  // of a segment
  c10::Device device = c10::kCPU;
};

class SleepingModel final : public core::Trainable {
 public:
  explicit SleepingModel(const SleepingOptions& options = {});
  // One sample.
  [[nodiscard]] static core::Batch batch(c10::Device device = c10::kCPU);

  [[nodiscard]] const std::vector<core::Parameter>& parameters() const override { return parameters_; }
  [[nodiscard]] core::TensorList inputs(const core::Batch& batch) const override;
  [[nodiscard]] int segments() const override { return options_.segments; }
  [[nodiscard]] core::TensorList forward_segment(int segment, core::TensorList inputs) override;
  [[nodiscard]] bool draws(int) const override { return false; }
  [[nodiscard]] core::LossTerms loss(const core::TensorList& outputs, const core::Batch& batch) const override;

 private:
  SleepingOptions options_;
  std::vector<core::Parameter> parameters_;
};

}  // namespace stoker::study
