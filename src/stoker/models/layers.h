// SPDX-License-Identifier: Apache-2.0
// The layers that reference networks are made of: values that hold handles to their tensors and can be copied into the
// closures of a segment. Made by NetworkBuilder; called through Network. One thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

namespace stoker::models {

// How a segment's layers behave; one for all layers of a segment, owned by the Network.
struct SegmentMode {
  bool training = true;  // batch norm normalises by the batch and updates its running statistics
  bool frozen = false;   // stays in evaluation mode whatever the network is set to
};

// Counts floating-point operations while it is on: each layer adds what it computes.
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

// Layer normalisation over the last dimension (Ba et al., 2016). x: floating [..., width]; comes out in the dtype of
// the weight where that is wider.
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

// Zeroes each value with this probability in training and scales the others up (Srivastava et al., 2014); nothing in
// evaluation and in frozen segments.
struct Dropout {
  double probability = 0;
  std::shared_ptr<const SegmentMode> mode;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const;
};

// Batch normalisation (Ioffe and Szegedy, 2015) with PyTorch's eps and momentum. x: floating [N, C, H, W]; its own
// tensors may be float32 under half inputs. Statistics are views into the network's one flat tensor; there is no count
// of batches, which only PyTorch's momentum=None would read. DataError in training mode if a channel has one value
// only.
struct BatchNorm2d {
  static constexpr double kEps = 1e-5;
  at::Tensor weight, bias;               // [C]
  at::Tensor running_mean, running_var;  // [C]
  double momentum = 0.1;                 // weight of the new batch in the running statistics
  std::shared_ptr<const SegmentMode> mode;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const;
};

}  // namespace stoker::models
