// SPDX-License-Identifier: Apache-2.0
// What the ranks of a run exchange in each step, always in this order, over connections of their own: before the passes
// normalisers, unless they count samples; with backward, running statistics and gradients; after the passes a message
// with losses, wishes, whether one ran out of memory, and the times of the rank. On a GPU the losses go between the
// devices. With pipelines, gradients and statistics are exchanged among the ranks that have the same stage, and two
// small messages are added: how large the passes are, and the norm. Used by train::Step with several ranks; one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "stoker/core/communicator.h"
#include "stoker/core/loss_terms.h"
#include "stoker/core/trainable.h"
#include "stoker/parallel/gradient_buckets.h"
#include "stoker/parallel/stages.h"
#include "stoker/train/device_values.h"
#include "stoker/train/rank_clock.h"

namespace stoker::train {

// What a rank asks of all, with each step.
struct EndWishes {
  bool late = false;     // the run's time is up
  bool stopped = false;  // a signal came
};

// What a rank tells of its passes over a batch.
struct RankReport {
  std::int64_t number = 0;  // of the step
  std::int64_t limit = 0;   // samples of a pass at most; 0: all
  bool failed = false;      // they ran out of memory here
};

class RankExchange {
 public:
  // A collective call. stages: null: each rank computes the whole model. bf16: gradients are summed in it. All outlive
  // it. Error if ranks have other models.
  RankExchange(core::Communicator& ranks, const core::Trainable& model, parallel::Stages* stages = nullptr,
               bool bf16 = false);
  ~RankExchange();
  RankExchange(const RankExchange&) = delete;
  RankExchange& operator=(const RankExchange&) = delete;

  // Before the passes over this rank's part of a batch of `samples` over all ranks, and before each new try:
  // normalisers become sums over ranks.
  void normalise(core::Normalisers& normalisers, std::int64_t samples);
  // Whether all ranks have said that their passes have this many samples. If not, the rank takes part without passes,
  // as if they had failed, and then takes those of limit().
  [[nodiscard]] bool agreed(std::int64_t limit) const { return limit_ == limit; }
  // That of the last finish(); none before the first one.
  [[nodiscard]] std::optional<std::int64_t> agreed_limit() const { return limit_; }
  // Before the passes. whole: the running statistics of this rank count, also if it has no samples; of synchronised
  // norms only those of ranks that have samples in each pass do.
  void begin(bool whole) { whole_ = whole; }
  // With pipelines, before the passes: the smallest limit of all ranks, since stages compute the same passes.
  [[nodiscard]] std::int64_t agree(std::int64_t limit);
  // Before the last backward pass: its gradients are summed beside it.
  void last_pass();
  // After the passes. Gradients and loss_parts become sums over ranks, running statistics their means, counts among
  // them the largest, and a wish of one rank one of all. False if a rank failed: then all drop the step, and no
  // statistic has changed. loss_parts: float64 [terms]; undefined if this rank had no samples. Error if ranks take
  // different steps.
  [[nodiscard]] bool finish(const RankReport& report, at::Tensor& loss_parts, EndWishes& wishes);
  // The smallest limit of all ranks, as of the last finish().
  [[nodiscard]] std::int64_t limit() const { return limit_.value_or(0); }
  // With pipelines: the norm of the gradients of all stages from that of each one, and whether one is not finite.
  void combine(double& norm, bool& infinite);

  // What each rank did in all steps so far; without hosts.
  [[nodiscard]] core::RankTimes times() const;

 private:
  struct Statistic {
    at::Tensor own, sum;  // sum: contiguous
    at::Tensor ranks;     // over whom it is summed: a number of its dtype, since operators allocate memory for others
    std::unique_ptr<core::Communicator::Pending> pending;
  };
  [[nodiscard]] std::int64_t header_bytes(const core::Trainable& model);
  [[nodiscard]] const at::Tensor& message() const { return stages_ != nullptr ? header_ : gradients_->message(); }
  void check_same_model() const;
  void check_equal(core::Communicator& ranks, std::uint64_t hash) const;
  void start_statistics();
  void write_header(const RankReport& report, const at::Tensor& loss_parts, const EndWishes& wishes);
  [[nodiscard]] bool read_headers(const at::Tensor& messages, std::int64_t number, EndWishes& wishes);
  void average_statistics(const at::Tensor& messages);

  std::unique_ptr<core::Communicator> ranks_;  // the same ranks, over connections of their own
  parallel::Stages* const stages_;
  core::Communicator& sums_;  // over whom gradients and statistics are summed
  const std::size_t terms_;   // of the loss
  const bool counts_samples_;
  const at::Device device_;
  std::vector<Statistic> statistics_;
  std::vector<at::Tensor> counts_;                      // among the running statistics
  at::Tensor header_;                                   // with stages: the message; else the buckets have it
  std::optional<parallel::GradientBuckets> gradients_;  // none: there is nobody to sum them with
  std::optional<DeviceValues> on_device_;               // none: losses and counts lie in the message
  at::Tensor messages_;                                 // of all ranks, a row each
  at::Tensor sums_messages_;                            // with stages: of the buckets, of sums_
  at::Tensor pair_, pairs_, stage_pairs_;               // with stages: float64 [2], of this rank, all ranks, a pipeline
  at::Tensor losses_;                                   // float64 [terms], of all ranks
  at::Tensor normalisers_;                              // float64 [ranks, terms]
  RankClock clock_;
  bool begun_ = false;  // the exchange of this step
  bool whole_ = true;   // this rank's running statistics count
  int wholes_ = 0;      // ranks whose do
  std::optional<std::int64_t> limit_;
};

}  // namespace stoker::train
