// SPDX-License-Identifier: Apache-2.0
#include "stoker/models/cnn.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/max_pool2d.h>

#include "stoker/base/error.h"
#include "stoker/models/builder.h"

namespace stoker::models {
namespace {

// A convolution to another width, pooled by 2 before the norm: the norm and the following layers see a quarter of the
// pixels.
std::function<at::Tensor(const at::Tensor&)> make_widening(NetworkBuilder& builder, const std::string& name,
                                                           std::int64_t in, std::int64_t out,
                                                           const ModelOptions& options) {
  const Conv2d conv = builder.conv(name + ".conv", {.in = in, .out = out, .bias = options.conv_bias});
  const auto norm = builder.conv_norm(options.norm, name + ".bn", out);
  return [conv, norm](const at::Tensor& x) { return norm(at::max_pool2d(conv(x), {2, 2})).relu_(); };
}

// x + f(x), f being two convolutions at the same width.
std::function<at::Tensor(const at::Tensor&)> make_residual(NetworkBuilder& builder, const std::string& name,
                                                           std::int64_t width, const ModelOptions& options) {
  const Conv2d conv1 = builder.conv(name + ".conv1", {.in = width, .out = width, .bias = options.conv_bias});
  const auto norm1 = builder.conv_norm(options.norm, name + ".bn1", width);
  const Conv2d conv2 = builder.conv(name + ".conv2", {.in = width, .out = width, .bias = options.conv_bias});
  const auto norm2 = builder.conv_norm(options.norm, name + ".bn2", width);
  return [=](const at::Tensor& x) { return norm2(conv2(norm1(conv1(x)).relu_())).relu_() + x; };
}

}  // namespace

std::unique_ptr<Network> make_cnn(const ModelOptions& options, const CnnShape& shape) {
  if (options.image_size < 8) {
    fail<ConfigError>("models.cnn", "images must be at least 8 pixels wide, got image_size={}; use model=mlp",
                      options.image_size);
  }
  NetworkBuilder builder(options.seed);
  const auto [stem_width, width1, width2] = shape.widths;

  builder.begin_segment("stem");
  builder.end_segment(make_widening(builder, "stem", options.channels, stem_width, options));

  builder.begin_segment("layer1");
  const auto widen1 = make_widening(builder, "layer1.widen", stem_width, width1, options);
  const auto residual1 = make_residual(builder, "layer1.residual", width1, options);
  builder.end_segment([=](const at::Tensor& x) { return residual1(widen1(x)); });

  builder.begin_segment("layer2");
  const auto widen2 = make_widening(builder, "layer2.widen", width1, width2, options);
  const auto residual2 = make_residual(builder, "layer2.residual", width2, options);
  builder.end_segment([=](const at::Tensor& x) { return residual2(widen2(x)); });

  builder.begin_segment("head");
  const Linear fc = builder.linear("fc", width2, options.classes, /*bias=*/false);
  const double scale = shape.logit_scale;
  builder.end_segment([=](const at::Tensor& x) { return fc(at::amax(x, {2, 3})) * scale; });
  return builder.finish();
}

}  // namespace stoker::models
