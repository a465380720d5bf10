// SPDX-License-Identifier: Apache-2.0
// The ranks of a run as the engine sees them, and the twin for a single one. parallel/ brings the real group.
#pragma once

#include <ATen/core/Tensor.h>

namespace stoker::core {

class Communicator {
 public:
  virtual ~Communicator() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  // Replaces tensor by its sum over ranks; every rank must call it with the same shape and dtype.
  virtual void all_reduce_sum(at::Tensor& tensor) = 0;
};

class SingleRank final : public Communicator {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }
  void all_reduce_sum(at::Tensor&) override {}
};

}  // namespace stoker::core
