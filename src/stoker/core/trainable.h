// SPDX-License-Identifier: Apache-2.0
// The interface of what the engine trains: parameters, buffers, a chain of segments, and a loss made of sums. A
// torch::nn module, a TorchScript package or, later, a Python module all implement it. Implemented in tasks/; called by
// train/. One thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "stoker/core/batch.h"
#include "stoker/core/loss_terms.h"
#include "stoker/core/norm_exchange.h"

namespace stoker::core {

// The role of a parameter, so that policies (weight decay, half precision, layout) need not guess from names.
enum class Role { kConv, kLinear, kNorm, kBias, kEmbedding };

struct Parameter {
  std::string name;   // dotted path, as in a Python state_dict
  at::Tensor tensor;  // leaf; requires_grad tells whether it is trained
  Role role = Role::kLinear;
  std::vector<int> segments = {0};  // segments that use it; a tied parameter has several
};

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

using TensorList = std::vector<at::Tensor>;

// A metric for people. The first one of a list selects the best checkpoint.
struct MetricValue {
  std::string name;
  double value = 0;  // NaN stays NaN
  bool higher_is_better = true;
};

class Trainable {
 public:
  virtual ~Trainable() = default;

  [[nodiscard]] virtual const std::vector<Parameter>& parameters() const = 0;
  // Persistent tensors that are not parameters (running statistics), at the same address for the whole run.
  // By default there are none.
  [[nodiscard]] virtual const std::vector<NamedTensor>& buffers() const;
  // The statistics that a forward pass in training mode changes, as few flat tensors as possible (those of buffers()
  // that change are views of them): compute saves and restores these.
  [[nodiscard]] virtual TensorList norm_buffers() const { return {}; }

  // The batch norms that compute statistics in training, each once per forward pass. None if not all of them can be
  // synchronised.
  [[nodiscard]] virtual NormCount norms_by_batch() const { return {}; }
  // From here on their statistics are those of the samples of all ranks; null: of this process. ranks outlive it.
  virtual void synchronise_norms(NormExchange* ranks) { (void)ranks; }

  // The model as a chain: what enters segment 0, and each segment as lists in, lists out (so that skips pass).
  [[nodiscard]] virtual TensorList inputs(const Batch& batch) const = 0;
  // A segment is a block: one residual or transformer block, the stem, the head.
  [[nodiscard]] virtual int segments() const { return 1; }
  [[nodiscard]] virtual std::string segment_name(int segment) const { return "segment " + std::to_string(segment); }
  // Parts of a segment in order, for finer splits: "attention", "mlp". Empty: it has none.
  [[nodiscard]] virtual std::vector<std::string> inner_segments(int segment) const {
    (void)segment;
    return {};
  }
  [[nodiscard]] virtual TensorList forward_segment(int segment, TensorList inputs) = 0;
  // One part of a segment that has parts; forward_segment() is the fold over them. ConfigError by default.
  [[nodiscard]] virtual TensorList forward_inner(int segment, int inner, TensorList inputs);
  // Whether a segment's forward draws random numbers in training (dropout). If none does but inputs() or loss() draws,
  // the numbers depend on the microbatches before, and ranks are not equal to microbatches.
  [[nodiscard]] virtual bool draws(int segment) const {
    (void)segment;
    return true;
  }
  // The fold over the segments, and nothing else. before: called before each segment that draws random numbers; may be
  // empty.
  [[nodiscard]] TensorList forward(TensorList inputs, const std::function<void(int segment)>& before = {});

  // Names of the loss terms, in order. By default one, "loss".
  [[nodiscard]] virtual std::vector<std::string> loss_names() const { return {"loss"}; }
  // Called once for the whole global batch, before it is split; depends only on the targets. By default the number of
  // samples: the loss is a mean over them.
  [[nodiscard]] virtual Normalisers normalisers(const Batch& batch) const;
  // Whether each of them is the number of samples, so that ranks know those of the global batch without a message.
  [[nodiscard]] virtual bool counts_samples() const { return false; }
  [[nodiscard]] virtual LossTerms loss(const TensorList& outputs, const Batch& batch) const = 0;

  // Metrics as tensors that add up over batches and ranks (sums, counts, confusion matrices) ...
  [[nodiscard]] virtual std::vector<NamedTensor> evaluate(const TensorList& outputs, const Batch& batch) const;
  // ... and the metrics from the totals, by then on the CPU. At least one. By default the loss is the only metric; a
  // class that overrides one of the two overrides both.
  [[nodiscard]] virtual std::vector<MetricValue> metrics(const std::vector<NamedTensor>& totals) const;

  // Switches the mode of dropout, batch norm and similar layers.
  virtual void set_training(bool on) { (void)on; }
};

// Number of elements of all parameters.
[[nodiscard]] std::int64_t parameter_count(const std::vector<Parameter>& parameters);

}  // namespace stoker::core
