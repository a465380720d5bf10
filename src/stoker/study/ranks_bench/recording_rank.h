// SPDX-License-Identifier: Apache-2.0
// One rank that says it is the first of two, sends nothing, and records when the step would have sent what: its steps
// do all that ranks cost but for waiting. Used by `stoker bench ranks`; one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "stoker/base/clock.h"
#include "stoker/core/communicator.h"
#include "stoker/study/ranks_bench/forecast.h"

namespace stoker::study {

class RecordingRank final : public core::Communicator {
 public:
  // Of a step, from here on.
  void begin();
  // What was recorded since begin(), which ends here.
  [[nodiscard]] Course end();

  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 2; }
  void all_reduce_sum(at::Tensor& tensor) override;
  void all_reduce_max(at::Tensor& tensor) override;
  void broadcast(at::Tensor& tensor, int from) override;
  [[nodiscard]] std::vector<at::Tensor> all_gather(const at::Tensor& tensor) override;
  [[nodiscard]] std::vector<at::Tensor> exchange(const at::Tensor& tensor) override;
  void barrier() override {}
  [[nodiscard]] std::unique_ptr<Pending> start_sum(at::Tensor& tensor) override;
  // The same ranks, whose collectives are recorded here.
  [[nodiscard]] std::unique_ptr<Communicator> split(int group) override;

 private:
  class Sum;
  class Again;
  void add(Call::Kind kind, double bytes, std::size_t sum = 0);
  // The comparison of sizes before a collective that is not part of each step's plan.
  void add_check();

  double began_ = 0;
  std::size_t started_ = 0;
  std::vector<Call> calls_;
};

}  // namespace stoker::study
