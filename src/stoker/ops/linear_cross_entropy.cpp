// SPDX-License-Identifier: Apache-2.0
#include "stoker/ops/linear_cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/graph_task.h>

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

// The sum of one piece. Overwrites logits, with their gradient if gradients are needed: a second tensor of this size
// would double the memory of a piece. exp() runs over them once.
at::Tensor piece_sum(at::Tensor& logits, const at::Tensor& target, bool gradient) {
  const at::Tensor counts = target.ge(0).to(logits.scalar_type());
  const at::Tensor index = target.clamp_min(0).unsqueeze(1);
  logits.sub_(logits.amax(1, /*keepdim=*/true));
  const at::Tensor of_target = logits.gather(1, index).squeeze(1);
  const at::Tensor total = logits.exp_().sum(1);
  if (gradient) {
    logits.mul_((counts / total).unsqueeze(1));
    logits.scatter_add_(1, index, -counts.unsqueeze(1));
  }
  return ((total.log() - of_target) * counts).sum();
}

// sum += left x right; an undefined sum is 0. dtype: of the sum, the factors' or a wider one.
void add_product(at::Tensor& sum, const at::Tensor& left, const at::Tensor& right, at::ScalarType dtype) {
  const bool wider = left.scalar_type() != dtype || right.scalar_type() != dtype ||
                     at::autocast::is_autocast_enabled(left.device().type());
  if (sum.defined() && !wider) {
    sum.addmm_(left, right);  // a product beside the sum would be as large as the table
  } else if (sum.defined()) {
    sum += at::mm(left, right);
  } else {
    sum = at::mm(left, right).to(dtype);
  }
}

struct LinearCrossEntropy : torch::autograd::Function<LinearCrossEntropy> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& table,
                            const at::Tensor& target, std::int64_t rows, bool to_hidden, bool to_table) {
    const at::ScalarType dtype = sum_dtype(hidden);
    at::Tensor sum = at::zeros({}, hidden.options().dtype(dtype));
    at::Tensor hidden_gradient = to_hidden ? at::empty_like(hidden) : at::Tensor();
    at::Tensor table_gradient;
    const std::int64_t size = hidden.size(0), pieces = (size + rows - 1) / rows;
    for (std::int64_t i = 0; i < pieces; ++i) {  // balanced: sizes differ by at most one
      const std::int64_t first = i * size / pieces, last = (i + 1) * size / pieces;
      const at::Tensor piece = hidden.slice(0, first, last);
      at::Tensor logits = at::linear(piece, table).to(dtype);
      sum += piece_sum(logits, target.slice(0, first, last), to_hidden || to_table);
      const at::Tensor gradient = logits.to(table.scalar_type());
      if (to_hidden) {
        hidden_gradient.slice(0, first, last).copy_(at::mm(gradient, table));
      }
      if (to_table) {
        add_product(table_gradient, gradient.t(), piece, dtype);
      }
    }
    if (to_table) {
      table_gradient = table_gradient.defined() ? table_gradient.to(table.scalar_type()) : at::zeros_like(table);
    }
    context->save_for_backward({hidden_gradient, table_gradient});
    return sum;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (at::GradMode::is_enabled()) {
      fail<ConfigError>(kWhere, "only first derivatives exist; backward with create_graph needs the plain loss");
    }
    const variable_list saved = context->get_saved_variables();
    const bool again = torch::autograd::get_current_graph_task_keep_graph();  // then the saved ones stay as they are
    const auto scaled = [&](const at::Tensor& gradient) {
      if (!gradient.defined()) {
        return gradient;
      }
      const at::Tensor scale = gradients[0].to(gradient.scalar_type());
      return again ? gradient * scale : at::Tensor(gradient).mul_(scale);
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
