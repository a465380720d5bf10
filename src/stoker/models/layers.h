// SPDX-License-Identifier: Apache-2.0
// The layers of the reference networks: values that hold handles to their tensors and can be copied into the closures
// of a segment. Made by NetworkBuilder; called through Network. One thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "stoker/core/norm_exchange.h"

namespace stoker::models {

// The mode of a segment's layers; shared by all layers of a segment, owned by the Network.
struct SegmentMode {
  bool training = true;  // batch norm uses batch statistics and updates its running statistics
  bool frozen = false;   // stays in evaluation mode in every mode of the network
  // Batch norm uses its running statistics and keeps them, also in training: samples do not depend on each other.
  bool frozen_statistics = false;
  core::NormExchange* ranks = nullptr;  // batch statistics are those of all ranks; null: of this process
  // Whether batch norms compute statistics.
  [[nodiscard]] bool by_batch() const { return training && !frozen && !frozen_statistics; }
};

// Counts floating-point operations while it is on: each layer adds its own.
struct FlopMeter {
  bool on = false;
  std::int64_t flops = 0;  // 2 per multiply-add
};

// 2-d convolution, square kernel. x: floating [N, in, H, W] → [N, out, H', W'].
struct Conv2d {
  at::Tensor weight;  // [out, in, kernel, kernel], channels_last
  at::Tensor bias;    // [out] or undefined
  std::int64_t stride = 1, padding = 0;
  std::shared_ptr<FlopMeter> meter;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const;
};

// x: floating [..., in] → [..., out].
struct Linear {
  at::Tensor weight;  // [out, in]
  at::Tensor bias;    // [out] or undefined
  std::shared_ptr<FlopMeter> meter;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const;
};

// The same with the weight as GPT-2 stores it, transposed. x: floating [..., in] → [..., out].
struct Projection {
  at::Tensor weight;  // [in, out]
  at::Tensor bias;    // [out]
  std::shared_ptr<FlopMeter> meter;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const;
};

// Layer normalisation over the last dimension (Ba et al., 2016). x: floating [..., width]; the output has the dtype of
// the weight if that is wider.
struct LayerNorm {
  static constexpr double kEps = 1e-5;  // PyTorch's
  at::Tensor weight, bias;              // [width]
  double eps = kEps;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const;
};

// A row of the table for each index. ids: int64 of any shape, 0 ... rows-1 → [..., width].
struct Embedding {
  at::Tensor weight;  // [rows, width]
  [[nodiscard]] at::Tensor operator()(const at::Tensor& ids) const;
};

// Zeroes each value with this probability in training and scales the others up (Srivastava et al., 2014); does nothing
// in evaluation and in frozen segments.
struct Dropout {
  double probability = 0;
  std::shared_ptr<const SegmentMode> mode;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const;
};

// Batch normalisation (Ioffe and Szegedy, 2015) with PyTorch's eps and momentum. x: floating [N, C, H, W]; its own
// tensors may be float32 with half-precision inputs. Statistics are views into the network's single flat tensor; there
// is no count of batches, which only PyTorch's momentum=None would use. DataError in training mode if a channel has
// only one value.
struct BatchNorm2d {
  static constexpr double kEps = 1e-5;
  at::Tensor weight, bias;               // [C]
  at::Tensor running_mean, running_var;  // [C]
  double momentum = 0.1;                 // weight of the new batch in the running statistics
  std::shared_ptr<const SegmentMode> mode;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const;
};

// Group normalisation (Wu and He, 2018): each sample is normalised by its own statistics, over groups of channels, in
// training as in evaluation. x: floating [N, C, H, W], C a multiple of groups; the output has the dtype of the weight
// if that is wider.
struct GroupNorm {
  static constexpr double kEps = 1e-5;  // PyTorch's
  at::Tensor weight, bias;              // [C]
  std::int64_t groups = 1;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const;
};

// The norm after a convolution.
enum class ConvNorm { kBatch, kGroup };

}  // namespace stoker::models
