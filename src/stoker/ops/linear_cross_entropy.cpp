// SPDX-License-Identifier: Apache-2.0
#include "stoker/ops/linear_cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "stoker/base/error.h"
#include "stoker/core/text.h"

namespace stoker::ops {
namespace {

constexpr std::string_view kWhere = "ops.linear_cross_entropy";
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::ScalarType sum_dtype(const at::Tensor& hidden) {
  return hidden.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

// The sum of one piece; overwrites logits with their gradient if gradients are needed.
at::Tensor piece_sum(at::Tensor& logits, const at::Tensor& target, bool gradient) {
  const at::Tensor counts = target.ge(0).to(logits.scalar_type());
  const at::Tensor index = target.clamp_min(0).unsqueeze(1);
  const at::Tensor normaliser = logits.logsumexp(1);
  const at::Tensor sum = ((normaliser - logits.gather(1, index).squeeze(1)) * counts).sum();
  if (gradient) {
    logits.sub_(normaliser.unsqueeze(1)).exp_();
    logits.scatter_add_(1, index, at::zeros_like(index, logits.options()).sub_(1)).mul_(counts.unsqueeze(1));
  }
  return sum;
}

struct LinearCrossEntropy : torch::autograd::Function<LinearCrossEntropy> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& table,
                            const at::Tensor& target, std::int64_t rows, bool to_hidden, bool to_table) {
    const at::ScalarType dtype = sum_dtype(hidden);
    at::Tensor sum = at::zeros({}, hidden.options().dtype(dtype));
    at::Tensor hidden_gradient = to_hidden ? at::zeros_like(hidden) : at::Tensor();
    at::Tensor table_gradient = to_table ? at::zeros_like(table, table.options().dtype(dtype)) : at::Tensor();
    for (std::int64_t first = 0; first < hidden.size(0); first += rows) {
      const std::int64_t last = std::min(first + rows, hidden.size(0));
      const at::Tensor piece = hidden.slice(0, first, last);
      at::Tensor logits = at::linear(piece, table).to(dtype);
      sum += piece_sum(logits, target.slice(0, first, last), to_hidden || to_table);
      const at::Tensor gradient = logits.to(table.scalar_type());
      if (to_hidden) {
        hidden_gradient.slice(0, first, last).copy_(at::mm(gradient, table));
      }
      if (to_table) {
        table_gradient += at::mm(gradient.t(), piece);
      }
    }
    context->save_for_backward({hidden_gradient, to_table ? table_gradient.to(table.scalar_type()) : table_gradient});
    return sum;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto scaled = [&](const at::Tensor& gradient) {
      return gradient.defined() ? gradient * gradients[0].to(gradient.scalar_type()) : gradient;
    };
    return {scaled(saved[0]), scaled(saved[1]), {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor linear_cross_entropy_sum(const at::Tensor& hidden, const at::Tensor& table, const at::Tensor& target,
                                    std::int64_t rows) {
  if (rows < 1) {
    fail<ConfigError>(kWhere, "rows must be at least 1, got {}", rows);
  }
  if (target.dim() != 1 || target.scalar_type() != at::kLong) {
    fail<DataError>(kWhere, "targets must be class numbers, int64 [N], got {}", core::describe(target));
  }
  if (hidden.dim() != 2 || table.dim() != 2 || hidden.size(0) != target.size(0) || hidden.size(1) != table.size(1)) {
    fail<DataError>(kWhere, "expected hidden [{}, D] and table [V, D], got {} and {}", target.size(0),
                    core::describe(hidden), core::describe(table));
  }
  const bool gradients = at::GradMode::is_enabled();  // forward() itself runs without gradients
  return LinearCrossEntropy::apply(hidden, table, target, rows, gradients && hidden.requires_grad(),
                                   gradients && table.requires_grad());
}

}  // namespace stoker::ops
