// SPDX-License-Identifier: Apache-2.0
#include "stoker/models/unet.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/upsample_bilinear2d.h>

#include <array>
#include <cmath>

#include "stoker/base/error.h"
#include "stoker/core/text.h"
#include "stoker/models/builder.h"

namespace stoker::models {
namespace {

constexpr std::string_view kWhere = "models.unet";
constexpr int kDeepest = 16;  // halvings; keeps the shifts below in range
using Forward = std::function<at::Tensor(const at::Tensor&)>;

void check(const UnetOptions& options) {
  if (options.channels < 1 || options.classes < 1 || options.width < 1) {
    fail<ConfigError>(kWhere, "channels, classes and width must be at least 1, got {}, {} and {}", options.channels,
                      options.classes, options.width);
  }
  if (options.depth < 1 || options.depth > kDeepest) {
    fail<ConfigError>(kWhere, "depth must be 1 to {}, got {}", kDeepest, options.depth);
  }
}

void check_input(const at::Tensor& x, int depth) {
  const std::int64_t step = std::int64_t{1} << depth;
  if (x.dim() != 4 || x.size(2) % step != 0 || x.size(3) % step != 0) {
    fail<DataError>(kWhere, "images must be [N, C, H, W], H and W multiples of {} (halved {} times), got {}", step,
                    depth, core::describe(x));
  }
}

Forward make_level(NetworkBuilder& builder, const std::string& name, std::int64_t in, std::int64_t out, bool bias) {
  const Conv2d conv1 = builder.conv(name + ".conv1", {.in = in, .out = out, .bias = bias});
  const BatchNorm2d bn1 = builder.batch_norm(name + ".bn1", out);
  const Conv2d conv2 = builder.conv(name + ".conv2", {.in = out, .out = out, .bias = bias});
  const BatchNorm2d bn2 = builder.batch_norm(name + ".bn2", out);
  return [=](const at::Tensor& x) { return bn2(conv2(bn1(conv1(x)).relu_())).relu_(); };
}

void add_down(NetworkBuilder& builder, const UnetOptions& options, int level) {
  const std::string name = "down" + std::to_string(level);
  const std::int64_t width = options.width << level;
  builder.begin_segment(name);
  const Forward convs = make_level(builder, name, level == 0 ? options.channels : width / 2, width, options.conv_bias);
  builder.end_list_segment([convs, level, depth = options.depth](core::TensorList stack) {
    if (level == 0) {
      check_input(stack.at(0), depth);
      return core::TensorList{convs(stack[0])};
    }
    stack.push_back(convs(at::max_pool2d(stack.back(), {2, 2})));
    return stack;
  });
}

void add_up(NetworkBuilder& builder, const UnetOptions& options, int level) {
  const std::string name = "up" + std::to_string(level);
  const std::int64_t width = options.width << level;
  builder.begin_segment(name);
  const Conv2d narrow = builder.conv(name + ".narrow", {.in = 2 * width, .out = width, .kernel = 1, .padding = 0});
  const Forward convs = make_level(builder, name, 2 * width, width, options.conv_bias);
  builder.end_list_segment([narrow, convs](core::TensorList stack) {
    constexpr std::array<double, 2> kDouble{2, 2};
    at::Tensor x = at::upsample_bilinear2d(narrow(stack.back()), {}, /*align_corners=*/false, kDouble);
    stack.pop_back();
    x = at::cat({stack.back(), x}, 1);
    stack.back() = convs(x);
    return stack;
  });
}

}  // namespace

std::unique_ptr<Network> make_unet(const UnetOptions& options) {
  check(options);
  NetworkBuilder builder(options.seed);
  for (int level = 0; level <= options.depth; ++level) {
    add_down(builder, options, level);
  }
  for (int level = options.depth - 1; level >= 0; --level) {
    add_up(builder, options, level);
  }
  builder.begin_segment("head");
  // Weights of variance 1/width: with Kaiming's fan_out and few classes, the logits would start too large.
  const double gain = std::sqrt(static_cast<double>(options.classes) / (2 * static_cast<double>(options.width)));
  const Conv2d head = builder.conv(
      "head", {.in = options.width, .out = options.classes, .kernel = 1, .padding = 0, .bias = true, .gain = gain});
  builder.end_segment([head](const at::Tensor& x) { return head(x); });
  return builder.finish();
}

}  // namespace stoker::models
