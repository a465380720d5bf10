// SPDX-License-Identifier: Apache-2.0
// One optimizer step: compute, then commit.
//
// compute() runs forward and backward over the microbatches of a global batch, and looks at the gradients. It may
// throw, and may write only gradients, norm buffers and generators: on an error the first two are restored; every step
// seeds the generators, and every pass if a segment draws. If it runs out of memory, it asks how to go on
// (memory::BatchSplit) and tries again, from the start of the batch. commit() clips, and updates weights, moments,
// scaler and EMA; it allocates no tensor, or changes nothing if the gradients are not finite; the host never waits for
// that verdict. Used by the loop, by trials, and by examples that write the loop by hand.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stoker/core/batch.h"
#include "stoker/core/communicator.h"
#include "stoker/core/events.h"
#include "stoker/core/trainable.h"
#include "stoker/memory/batch_split.h"
#include "stoker/memory/recompute.h"
#include "stoker/optim/ema.h"
#include "stoker/optim/optimizer.h"
#include "stoker/parallel/stages.h"
#include "stoker/precision/grad_scaler.h"
#include "stoker/train/backward_updates.h"
#include "stoker/train/pipeline_passes.h"
#include "stoker/train/rank_exchange.h"
#include "stoker/train/synced_norms.h"
#include "stoker/train/verdict.h"

namespace stoker::train {

struct StepOptions {
  at::ScalarType autocast = at::kFloat;    // kBFloat16 or kHalf: autocast to it
  double clip = 0;                         // largest gradient norm; 0: off
  std::uint64_t seed = 0;                  // of the model's random numbers (dropout)
  memory::RecomputeChoice recompute = {};  // activation checkpointing: changes memory and time, not the gradients
  // compute() updates each parameter inside backward and frees its gradient (train/backward_updates.h). It then needs
  // set_lr() before, and may leave a step half taken if it fails: see torn().
  bool optimizer_in_backward = false;
  bool bf16_sums = false;  // ranks sum gradients in bf16 (parallel/gradient_buckets.h)
  // The statistics of batch norms are those of the samples that all ranks have in a pass (ops/sync_batch_norm.h).
  bool sync_norms = false;
};

// The objects that a step works on; ema may be null. All outlive the Step. The scaler holds the result of the single
// finite check per step, whether it scales or not. With stages the optimizer has the parameters of this rank's stage,
// and a step changes only those.
struct StepParts {
  core::Trainable& model;
  optim::Optimizer& optimizer;
  precision::GradScaler& scaler;
  core::Communicator& ranks;
  optim::Ema* ema = nullptr;
  parallel::Stages* stages = nullptr;  // this rank computes one of them; null: the whole model
};

class Step final : public core::Stateful {
 public:
  // ConfigError if nothing requires a gradient, if options.recompute does not fit the model, for optimizer_in_backward
  // with clipping, a scaler, several ranks or on a GPU, for stages on a GPU, or for sync_norms with recompute, stages
  // or without batch norms.
  Step(StepParts parts, StepOptions options);
  // The same with its own parts and without averages: for loops by hand. Gradients are scaled if autocast is kHalf.
  // Optimizer and scaler are saved and loaded with the step. ranks: null: one. Model and ranks outlive it.
  Step(core::Trainable& model, const optim::OptimizerOptions& optimizer, StepOptions options = {},
       core::Communicator* ranks = nullptr);

  // Leaves the gradients of the whole global batch in the parameters, summed over ranks, and looks at them. batch: this
  // rank's part. number: index of the step in the run, from 0. microbatch: samples per forward pass, balanced over the
  // batch; 0: the batch. The random numbers of a segment depend on (seed, number, the first row of the forward pass in
  // the global batch, segment): so ranks draw the same numbers as microbatches. With several ranks, norm buffers become
  // the mean over ranks, and a parameter that no rank used gets gradients of 0.
  void compute(const core::Batch& batch, std::int64_t number, std::int64_t microbatch = 0);
  // The same, split by `split`, which is also asked what to do when memory runs out; all work on the batch has been
  // dropped then, and its tensors are free. The result is the same to the bit as without the failure.
  void compute(const core::Batch& batch, std::int64_t number, memory::BatchSplit& split);
  // With several ranks: own() is asked in each compute() for what this rank wishes; agreed(): what a rank wished then.
  void set_wishes(std::function<EndWishes()> own) { own_wishes_ = std::move(own); }
  [[nodiscard]] const EndWishes& agreed() const { return agreed_; }
  // Only for optimizer_in_backward, else without effect: the learning rate of the next compute(), and of its commit().
  void set_lr(double lr);
  // Takes the step with this learning rate, and drops the gradients. Allocates no tensor, unless the gradients were
  // changed since compute(): then it looks at them again. ConfigError without a compute() before it.
  void commit(double lr);
  // Sets gradients to none, and the norm buffers to what they were before the last compute(), also after a commit().
  void drop();

  // Whether parameters have taken a step with optimizer_in_backward that no commit() has ended: the weights belong to
  // no step. After a failure this stays until a checkpoint is loaded.
  [[nodiscard]] bool torn() const { return updates_ && updates_->begun(); }

  // The values that commit() reports: float32, 1-dim, on the device, one value per name. "loss" comes first; "skipped"
  // counts the steps in a row that were not finite and changed nothing.
  [[nodiscard]] const std::vector<std::string>& scalar_names() const { return verdict_.names(); }
  [[nodiscard]] const at::Tensor& scalars() const { return verdict_.scalars(); }

  // What each rank did in the steps so far, by what they told each other; nothing with one rank.
  [[nodiscard]] core::RankTimes rank_times() const { return exchange_ ? exchange_->times() : core::RankTimes(); }

  void save_state(core::State& state) const override;
  void load_state(const core::State& state) override;

 private:
  struct OwnParts {
    core::SingleRank alone;
    std::unique_ptr<optim::Optimizer> optimizer;
    precision::GradScaler scaler;
  };
  Step(core::Trainable& model, std::unique_ptr<OwnParts> own, const StepOptions& options, core::Communicator* ranks);
  void compute_whole(const core::Batch& batch, std::int64_t number, memory::BatchSplit& split);
  void synchronise_norms();
  [[nodiscard]] std::int64_t passes_of_ranks(const core::Batch& batch, const memory::BatchSplit& split) const;
  void compute_with_ranks(const core::Batch& batch, std::int64_t number, memory::BatchSplit& split);
  [[nodiscard]] bool compute_part(const core::Batch& batch, std::int64_t number, const core::Normalisers& normalisers,
                                  memory::BatchSplit& split, std::int64_t passes);
  [[nodiscard]] bool compute_stage(const core::Batch& batch, std::int64_t number, const core::Normalisers& normalisers,
                                   std::int64_t passes);
  // The parts of compute() and commit() that a CUDA graph can hold if no segment draws random numbers: no number comes
  // from the host, and they read only a batch at a fixed address besides the step's own tensors.
  void accumulate_gradients(const core::Batch& batch, std::int64_t number, const core::Normalisers& normalisers,
                            std::int64_t passes);
  void take();
  void forward_backward(const core::Batch& part, std::int64_t number, const core::Normalisers& normalisers);
  void look_at_gradients();
  void look_with_stages();
  // Changes if a gradient is changed or replaced.
  [[nodiscard]] std::uint64_t fingerprint_of_gradients() const;
  void drop_gradients();
  void save_norm_buffers();
  void keep_norm_buffers_if_skipped();

  std::unique_ptr<OwnParts> own_;  // null: parts_ belong to the caller
  StepParts parts_;
  StepOptions options_;
  memory::RecomputePlan recompute_;
  at::Device device_;
  std::size_t terms_;  // of the loss
  Verdict verdict_;
  std::unique_ptr<BackwardUpdates> updates_;   // null: the optimizer works in commit()
  std::unique_ptr<RankExchange> exchange_;     // null: there is one rank
  std::unique_ptr<SyncedNorms> norms_;         // null: batch norms see the samples of one rank
  std::unique_ptr<PipelinePasses> stage_;      // null: this rank computes the whole model
  std::vector<at::Tensor> norm_, saved_norm_;  // norm buffers, and their values before compute()
  std::int64_t largest_pass_ = 0;              // samples
  at::Tensor loss_parts_;                      // float64 [terms]
  bool draws_;                                 // a segment draws random numbers
  std::function<EndWishes()> own_wishes_;
  EndWishes agreed_;
  bool last_pass_ = false;       // over the batch
  bool computed_ = false;        // commit() may follow
  std::uint64_t looked_at_ = 0;  // fingerprint of the gradients
};

}  // namespace stoker::train
