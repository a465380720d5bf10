// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/profile/call_work.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

namespace stoker::observe::profile {
namespace {

using Shape = std::vector<std::int64_t>;

const Shape& shape(const Call& call, std::size_t argument) {
  static const Shape kNone;
  return argument < call.shapes.size() ? call.shapes[argument] : kNone;
}

const Shape& numbers(const Call& call, std::size_t argument) {
  static const Shape kNone;
  return argument < call.numbers.size() ? call.numbers[argument] : kNone;
}

double elements(const Shape& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), 1.0,
                         [](double product, std::int64_t size) { return product * static_cast<double>(size); });
}

double size(const Shape& sizes, std::size_t from_end) {
  return from_end < sizes.size() ? static_cast<double>(sizes[sizes.size() - 1 - from_end]) : 1;
}

// [.., m, k] times [k, n] or [.., k, n].
double product(const Shape& left, const Shape& right) {
  return left.size() < 2 || right.empty() ? 0 : 2 * elements(left) * (right.size() < 2 ? 1 : size(right, 0));
}

// aten::convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups).
// Per element of the output: a product with each weight of its channel.
double convolution(const Call& call) {
  const Shape &input = shape(call, 0), &weight = shape(call, 1);
  if (input.size() < 3 || weight.size() != input.size()) {
    return 0;
  }
  const bool transposed = numbers(call, 6) == Shape{1};
  const double per_channel = elements(weight) / static_cast<double>(weight[0]);
  if (transposed) {  // each element of the input meets each weight of its channel
    return 2 * elements(input) * per_channel;
  }
  double output = static_cast<double>(input[0] * weight[0]);
  for (std::size_t i = 2; i < input.size(); ++i) {
    const auto option = [&](std::size_t argument, std::int64_t usual) {
      const Shape& given = numbers(call, argument);
      return given.empty() ? usual : given[std::min(i - 2, given.size() - 1)];
    };
    const std::int64_t reach = option(5, 1) * (weight[i] - 1) + 1;
    output *= static_cast<double>((input[i] + 2 * option(4, 0) - reach) / option(3, 1) + 1);
  }
  return 2 * output * per_channel;
}

// aten::convolution_backward(gradient, input, weight, bias_sizes, stride, padding, dilation, transposed,
// output_padding, groups, output_mask): as much as forward for the input, and again for the weight.
double convolution_backward(const Call& call) {
  const Shape &gradient = shape(call, 0), &input = shape(call, 1), &weight = shape(call, 2);
  if (gradient.size() < 3 || weight.size() != gradient.size()) {
    return 0;
  }
  const bool transposed = numbers(call, 7) == Shape{1};
  const double per_channel = elements(weight) / static_cast<double>(weight[0]);
  const Shape& wanted = numbers(call, 10);
  const double times = wanted.size() == 3 ? static_cast<double>(wanted[0] + wanted[1]) : 2;
  return times * 2 * elements(transposed ? input : gradient) * per_channel;
}

// query [.., m, d], key [.., n, d], value [.., n, e]: two products; backward five (the scores again, then two each).
double attention(const Call& call, std::size_t query, double products) {
  const Shape &q = shape(call, query), &k = shape(call, query + 1), &v = shape(call, query + 2);
  if (q.size() < 3 || k.size() < 3 || v.size() < 3) {
    return 0;
  }
  return products * elements(q) / size(q, 0) * size(k, 1) * (size(k, 0) + size(v, 0));
}

double flops(const Call& call) {
  const std::string_view name = call.name;
  if (name == "aten::mm" || name == "aten::bmm" || name == "aten::mv" || name == "aten::mkldnn_linear") {
    return name == "aten::mkldnn_linear" ? 2 * elements(shape(call, 0)) * size(shape(call, 1), 1)
                                         : product(shape(call, 0), shape(call, 1));
  }
  if (name == "aten::addmm" || name == "aten::baddbmm" || name == "aten::_addmm_activation" || name == "aten::addmv") {
    return product(shape(call, 1), shape(call, 2));
  }
  if (name == "aten::convolution") {
    return convolution(call);
  }
  if (name == "aten::convolution_backward") {
    return convolution_backward(call);
  }
  if (name.starts_with("aten::_scaled_dot_product") || name.starts_with("aten::_efficient_attention") ||
      name.starts_with("aten::_flash_attention")) {
    const bool backward = name.find("backward") != name.npos;
    return attention(call, backward ? 1 : 0, backward ? 5 : 2);
  }
  return 0;
}

std::int64_t bytes_of_type(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 11> kSizes = {{{"float", 4},
                                                                                 {"double", 8},
                                                                                 {"c10::BFloat16", 2},
                                                                                 {"c10::Half", 2},
                                                                                 {"long int", 8},
                                                                                 {"long", 8},
                                                                                 {"int", 4},
                                                                                 {"short", 2},
                                                                                 {"unsigned char", 1},
                                                                                 {"signed char", 1},
                                                                                 {"bool", 1}}};
  const auto found = std::ranges::find(kSizes, type, &std::pair<std::string_view, std::int64_t>::first);
  return found == kSizes.end() ? 0 : found->second;
}

double bytes_of_argument(const Call& call, std::size_t argument) {
  return argument < call.types.size() && argument < call.shapes.size()
             ? elements(call.shapes[argument]) * static_cast<double>(bytes_of_type(call.types[argument]))
             : 0;
}

// Operators that do little arithmetic per byte. Those of the second list write much less than they read.
constexpr std::array<std::string_view, 54> kStreams = {"aten::add",
                                                       "aten::add_",
                                                       "aten::sub",
                                                       "aten::sub_",
                                                       "aten::mul",
                                                       "aten::mul_",
                                                       "aten::div",
                                                       "aten::div_",
                                                       "aten::neg",
                                                       "aten::exp",
                                                       "aten::log",
                                                       "aten::sqrt",
                                                       "aten::rsqrt",
                                                       "aten::pow",
                                                       "aten::tanh",
                                                       "aten::sigmoid",
                                                       "aten::relu",
                                                       "aten::relu_",
                                                       "aten::clamp_min",
                                                       "aten::clamp_min_",
                                                       "aten::gelu",
                                                       "aten::silu",
                                                       "aten::copy_",
                                                       "aten::where",
                                                       "aten::masked_fill",
                                                       "aten::masked_fill_",
                                                       "aten::addcmul_",
                                                       "aten::addcdiv_",
                                                       "aten::lerp_",
                                                       "aten::bernoulli_",
                                                       "aten::native_dropout",
                                                       "aten::_softmax",
                                                       "aten::_log_softmax",
                                                       "aten::gt",
                                                       "aten::lt",
                                                       "aten::eq",
                                                       "aten::ne",
                                                       "aten::ge",
                                                       "aten::le",
                                                       "aten::logical_not",
                                                       "aten::native_layer_norm",
                                                       "aten::native_layer_norm_backward",
                                                       "aten::native_batch_norm",
                                                       "aten::native_batch_norm_backward",
                                                       "aten::native_group_norm",
                                                       "aten::native_group_norm_backward",
                                                       "aten::_softmax_backward_data",
                                                       "aten::_log_softmax_backward_data",
                                                       "aten::gelu_backward",
                                                       "aten::threshold_backward",
                                                       "aten::silu_backward",
                                                       "aten::native_dropout_backward",
                                                       "aten::tanh_backward",
                                                       "aten::sigmoid_backward"};
constexpr std::array<std::string_view, 8> kReductions = {
    "aten::sum",  "aten::mean",    "aten::max_pool2d_with_indices", "aten::argmax", "aten::amax", "aten::avg_pool2d",
    "aten::norm", "aten::isfinite"};

double bytes(const Call& call) {
  const bool streams = std::ranges::find(kStreams, call.name) != kStreams.end();
  if (!streams && std::ranges::find(kReductions, call.name) == kReductions.end()) {
    return 0;
  }
  double inputs = 0, largest = 0;
  for (std::size_t i = 0; i < call.shapes.size(); ++i) {
    if (!call.shapes[i].empty()) {
      inputs += bytes_of_argument(call, i);
      largest = std::max(largest, bytes_of_argument(call, i));
    }
  }
  const bool counted = !streams || call.name == "aten::copy_";  // its target is an argument, and is not read
  return inputs + (counted ? 0 : largest);
}

}  // namespace

CallWork work_of(const Call& call) { return call.range ? CallWork{} : CallWork{flops(call), bytes(call)}; }

std::string type_of(const Call& call) {
  for (std::size_t i = 0; i < call.types.size() && i < call.shapes.size(); ++i) {
    if (bytes_of_type(call.types[i]) > 0) {
      return call.types[i] == "c10::BFloat16" ? "bfloat16"
             : call.types[i] == "c10::Half"   ? "half"
             : call.types[i] == "long int"    ? "long"
                                              : call.types[i];
    }
  }
  return "";
}

std::string shapes_of(const Call& call) {
  constexpr std::size_t kShown = 3;
  std::string text;
  std::size_t shown = 0;
  for (std::size_t i = 0; i < call.shapes.size() && shown < kShown; ++i) {
    if (i >= call.types.size() || bytes_of_type(call.types[i]) == 0) {
      continue;
    }
    ++shown;
    text += text.empty() ? "[" : " [";
    for (std::size_t k = 0; k < call.shapes[i].size(); ++k) {
      text += (k == 0 ? "" : ",") + std::to_string(call.shapes[i][k]);
    }
    text += ']';
  }
  return text;
}

bool is_indexing(std::string_view name) {
  constexpr std::array<std::string_view, 9> kWords = {"index",     "gather", "scatter", "masked",   "nonzero",
                                                      "embedding", "where",  "take",    "bucketize"};
  constexpr std::array<std::string_view, 3> kOthers = {"_impl_index", "with_indices",
                                                       "indices"};  // batch norm, pooling
  return std::ranges::none_of(kOthers, [&](std::string_view word) { return name.find(word) != name.npos; }) &&
         std::ranges::any_of(kWords, [&](std::string_view word) { return name.find(word) != name.npos; });
}

}  // namespace stoker::observe::profile
