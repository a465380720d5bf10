// SPDX-License-Identifier: Apache-2.0
// Arithmetic and traffic of operators, against shapes that the operators themselves give.
#include <ATen/ops/bmm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "stoker/observe/profile/call_work.h"

namespace stoker::observe::profile {
namespace {

using Shapes = std::vector<std::vector<std::int64_t>>;

Call call(std::string name, Shapes shapes, Shapes numbers = {}) {
  Call made{.name = std::move(name)};
  made.types.assign(shapes.size(), "float");
  made.shapes = std::move(shapes);
  made.numbers = std::move(numbers);
  return made;
}

struct Convolution {
  std::vector<std::int64_t> input, weight, stride, padding, dilation;
  std::int64_t groups;
};

// Each element of the output is a sum over the weights of its channel.
double by_output(const Convolution& each) {
  const at::Tensor weight = at::ones(each.weight);
  const at::Tensor output =
      at::conv2d(at::ones(each.input), weight, {}, each.stride, each.padding, each.dilation, each.groups);
  return 2.0 * static_cast<double>(output.numel() * weight[0].numel());
}

TEST(ProfileWork, ConvolutionsByTheirOutput) {
  for (const Convolution& each : std::vector<Convolution>{{{2, 3, 9, 11}, {5, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
                                                          {{2, 4, 9, 11}, {6, 2, 3, 2}, {2, 3}, {0, 1}, {1, 1}, 2},
                                                          {{1, 3, 20, 20}, {4, 3, 3, 3}, {2, 2}, {2, 2}, {3, 2}, 1},
                                                          {{1, 8, 7, 7}, {8, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 8}}) {
    const double expected = by_output(each);
    const auto forward = call("aten::convolution", {each.input, each.weight, {}, {}, {}, {}, {}, {}, {}},
                              {{}, {}, {}, each.stride, each.padding, each.dilation, {0}, {0, 0}, {each.groups}});
    EXPECT_EQ(work_of(forward).flops, expected);
    const at::Tensor output = at::conv2d(at::ones(each.input), at::ones(each.weight), {}, each.stride, each.padding,
                                         each.dilation, each.groups);
    Shapes numbers{{}, {}, {}, {}, each.stride, each.padding, each.dilation, {0}, {0, 0}, {each.groups}, {1, 1, 0}};
    auto backward = call("aten::convolution_backward", {output.sizes().vec(), each.input, each.weight}, numbers);
    EXPECT_EQ(work_of(backward).flops, 2 * expected);
    backward.numbers.back() = {0, 1, 1};  // the first layer: no gradient for the images
    EXPECT_EQ(work_of(backward).flops, expected);
  }
}

// Every element of the input meets every weight of its channel.
TEST(ProfileWork, TransposedConvolution) {
  const Shapes shapes = {{2, 6, 5, 5}, {6, 4, 2, 2}};
  const auto up = call("aten::convolution", shapes, {{}, {}, {}, {2, 2}, {0, 0}, {1, 1}, {1}, {0, 0}, {1}});
  EXPECT_EQ(work_of(up).flops, 2.0 * 2 * 6 * 5 * 5 * 4 * 2 * 2);
}

TEST(ProfileWork, ProductsByRowsAndColumns) {
  EXPECT_EQ(work_of(call("aten::mm", {{7, 5}, {5, 3}})).flops, 2.0 * 7 * 5 * 3);
  EXPECT_EQ(work_of(call("aten::addmm", {{3}, {7, 5}, {5, 3}})).flops, 2.0 * 7 * 5 * 3);
  EXPECT_EQ(work_of(call("aten::bmm", {{4, 7, 5}, {4, 5, 3}})).flops, 2.0 * 4 * 7 * 5 * 3);
  EXPECT_EQ(work_of(call("aten::mv", {{7, 5}, {5}})).flops, 2.0 * 7 * 5);
  EXPECT_EQ(work_of(call("aten::mkldnn_linear", {{2, 7, 5}, {3, 5}})).flops, 2.0 * 2 * 7 * 5 * 3);
}

// The two products that attention would be without its own operator.
TEST(ProfileWork, AttentionAsItsProducts) {
  const std::vector<std::int64_t> q{2, 4, 10, 16}, k{2, 4, 12, 16}, v{2, 4, 12, 8};
  const double scores = work_of(call("aten::bmm", {{8, 10, 16}, {8, 16, 12}})).flops;
  const double values = work_of(call("aten::bmm", {{8, 10, 12}, {8, 12, 8}})).flops;
  EXPECT_EQ(work_of(call("aten::_scaled_dot_product_flash_attention_for_cpu", {q, k, v})).flops, scores + values);
  const auto backward = call("aten::_scaled_dot_product_flash_attention_for_cpu_backward", {q, q, q, q});
  EXPECT_EQ(work_of(backward).flops, 5 * work_of(call("aten::bmm", {{8, 10, 16}, {8, 16, 10}})).flops);
}

TEST(ProfileWork, TrafficOfWhatMemoryLimits) {
  EXPECT_EQ(work_of(call("aten::relu", {{10, 10}})).bytes, 2 * 400);
  EXPECT_EQ(work_of(call("aten::add", {{10, 10}, {10}})).bytes, 400 + 40 + 400);
  EXPECT_EQ(work_of(call("aten::copy_", {{10, 10}, {10, 10}})).bytes, 2 * 400);
  EXPECT_EQ(work_of(call("aten::native_layer_norm", {{10, 10}, {}, {10}, {10}})).bytes, 400 + 40 + 40 + 400);
  Call half = call("aten::relu", {{10, 10}});
  half.types = {"c10::BFloat16"};
  EXPECT_EQ(work_of(half).bytes, 2 * 200);
  EXPECT_EQ(work_of(call("aten::view", {{10, 10}})).bytes, 0);
}

TEST(ProfileWork, WhatIsUnknownIsZeroAndWhatIsOddDoesNotFail) {
  for (const char* name : {"aten::mm", "aten::bmm", "aten::addmm", "aten::convolution", "aten::convolution_backward",
                           "aten::_scaled_dot_product_flash_attention", "aten::mkldnn_linear"}) {
    EXPECT_EQ(work_of(Call{.name = name}).flops, name == std::string("aten::mkldnn_linear") ? 2 : 0) << name;
  }
  Call range = call("aten::mm", {{7, 5}, {5, 3}});
  range.range = true;  // a name that the program chose
  EXPECT_EQ(work_of(range).flops, 0);
}

TEST(ProfileWork, TextOfShapesAndTypes) {
  Call each = call("aten::addmm", {{3}, {7, 5}, {}, {5, 3}});
  each.types = {"float", "float", "Scalar", "c10::Half"};
  EXPECT_EQ(shapes_of(each), "[3] [7,5] [5,3]");
  EXPECT_EQ(type_of(each), "float");
  each.types = {"Scalar", "c10::BFloat16", "", ""};
  EXPECT_EQ(shapes_of(each), "[7,5]");
  EXPECT_EQ(type_of(each), "bfloat16");
}

TEST(ProfileWork, IndexingAndMasks) {
  for (const char* name : {"aten::index", "aten::index_put_", "aten::gather", "aten::scatter_add_",
                           "aten::masked_fill_", "aten::nonzero", "aten::embedding_dense_backward", "aten::where",
                           "void at::native::index_elementwise_kernel<128, 4>", "aten::index_select"}) {
    EXPECT_TRUE(is_indexing(name)) << name;
  }
  for (const char* name : {"aten::_batch_norm_impl_index", "aten::max_pool2d_with_indices", "aten::mm", "aten::add"}) {
    EXPECT_FALSE(is_indexing(name)) << name;
  }
}

}  // namespace
}  // namespace stoker::observe::profile
