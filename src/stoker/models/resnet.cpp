// SPDX-License-Identifier: Apache-2.0
#include "stoker/models/resnet.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "stoker/base/error.h"
#include "stoker/models/builder.h"

namespace stoker::models {
namespace {

using Forward = std::function<at::Tensor(const at::Tensor&)>;

// Settings that all convolutions of a network share.
struct Style {
  bool norm;
  ConvNorm kind;  // of the norm
  bool bias;
  double gain;  // of the convolutions of a block except the last
};

struct BlockShape {
  std::int64_t in, width, out, stride;
};

Style style_of(const ModelOptions& options, const ResnetShape& shape) {
  const double blocks = std::accumulate(shape.blocks.begin(), shape.blocks.end(), 0);
  return {shape.norm, options.norm, options.conv_bias || !shape.norm,
          shape.norm ? 1 : std::pow(blocks, shape.bottleneck ? -1.0 / 4 : -1.0 / 2)};
}

// A convolution and the norm after it, if there is one.
Forward make_conv(NetworkBuilder& builder, const Style& style, const std::string& conv_name,
                  const std::string& norm_name, ConvShape shape) {
  shape.bias = style.bias;
  shape.zero_bias = !style.norm;
  const Conv2d conv = builder.conv(conv_name, shape);
  if (!style.norm) {
    return conv;
  }
  const Forward norm = builder.conv_norm(style.kind, norm_name, shape.out);
  return [=](const at::Tensor& x) { return norm(conv(x)); };
}

// The shortcut of a block: the identity, or a 1x1 convolution if the shape changes.
Forward make_shortcut(NetworkBuilder& builder, const Style& style, const std::string& name, const BlockShape& shape) {
  if (shape.stride == 1 && shape.in == shape.out) {
    return [](const at::Tensor& x) { return x; };
  }
  return make_conv(builder, style, name + ".downsample.0", name + ".downsample.1",
                   {.in = shape.in, .out = shape.out, .kernel = 1, .stride = shape.stride, .padding = 0});
}

Forward make_basic_block(NetworkBuilder& builder, const Style& style, const std::string& name,
                         const BlockShape& shape) {
  const Forward conv1 = make_conv(builder, style, name + ".conv1", name + ".bn1",
                                  {.in = shape.in, .out = shape.width, .stride = shape.stride, .gain = style.gain});
  const Forward conv2 = make_conv(builder, style, name + ".conv2", name + ".bn2",
                                  {.in = shape.width, .out = shape.out, .gain = style.norm ? 1.0 : 0.0});
  const Forward shortcut = make_shortcut(builder, style, name, shape);
  return [=](const at::Tensor& x) { return conv2(conv1(x).relu_()).add_(shortcut(x)).relu_(); };
}

Forward make_bottleneck(NetworkBuilder& builder, const Style& style, const std::string& name, const BlockShape& shape) {
  const Forward conv1 = make_conv(builder, style, name + ".conv1", name + ".bn1",
                                  {.in = shape.in, .out = shape.width, .kernel = 1, .padding = 0, .gain = style.gain});
  const Forward conv2 = make_conv(builder, style, name + ".conv2", name + ".bn2",
                                  {.in = shape.width, .out = shape.width, .stride = shape.stride, .gain = style.gain});
  const Forward conv3 =
      make_conv(builder, style, name + ".conv3", name + ".bn3",
                {.in = shape.width, .out = shape.out, .kernel = 1, .padding = 0, .gain = style.norm ? 1.0 : 0.0});
  const Forward shortcut = make_shortcut(builder, style, name, shape);
  return [=](const at::Tensor& x) { return conv3(conv2(conv1(x).relu_()).relu_()).add_(shortcut(x)).relu_(); };
}

// One of layer1 ... layer4, a segment per block; the first one changes width and, from layer2 on, halves the
// resolution.
void add_layer(NetworkBuilder& builder, const Style& style, int layer, const ResnetShape& shape) {
  const std::int64_t expansion = shape.bottleneck ? 4 : 1;
  const std::int64_t width = shape.width << (layer - 1);
  for (int block = 0; block < shape.blocks[layer - 1]; ++block) {
    const std::int64_t in = block > 0 ? width * expansion : layer == 1 ? shape.width : width / 2 * expansion;
    const BlockShape block_shape{in, width, width * expansion, block == 0 && layer > 1 ? 2 : 1};
    const std::string name = fmt::format("layer{}.{}", layer, block);
    builder.begin_segment(name, fmt::format("layer{}", layer));
    builder.end_segment(shape.bottleneck ? make_bottleneck(builder, style, name, block_shape)
                                         : make_basic_block(builder, style, name, block_shape));
  }
}

Forward make_stem(NetworkBuilder& builder, const Style& style, int channels, const ResnetShape& shape) {
  if (shape.small_stem) {
    const Forward conv1 = make_conv(builder, style, "conv1", "bn1", {.in = channels, .out = shape.width});
    return [=](const at::Tensor& x) { return conv1(x).relu_(); };
  }
  const Forward conv1 = make_conv(builder, style, "conv1", "bn1",
                                  {.in = channels, .out = shape.width, .kernel = 7, .stride = 2, .padding = 3});
  return [=](const at::Tensor& x) { return at::max_pool2d(conv1(x).relu_(), {3, 3}, {2, 2}, {1, 1}); };
}

}  // namespace

std::unique_ptr<Network> make_resnet(const ModelOptions& options, const ResnetShape& shape) {
  if (shape.width < 1 || *std::ranges::min_element(shape.blocks) < 1) {
    fail<ConfigError>("models.resnet", "width and the blocks of each layer must be at least 1, got {} and {}",
                      shape.width, fmt::join(shape.blocks, ", "));
  }
  const Style style = style_of(options, shape);
  NetworkBuilder builder(options.seed);
  builder.begin_segment("stem");
  builder.end_segment(make_stem(builder, style, options.channels, shape));
  for (int layer = 1; layer <= 4; ++layer) {
    add_layer(builder, style, layer, shape);
  }
  builder.begin_segment("head");
  const Linear fc = builder.linear("fc", shape.width * (shape.bottleneck ? 32 : 8), options.classes);
  builder.end_segment([=](const at::Tensor& x) { return fc(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1)); });
  return builder.finish();
}

std::unique_ptr<Network> make_resnet18(const ModelOptions& options) {
  return make_resnet(options, {.blocks = {2, 2, 2, 2}});
}
std::unique_ptr<Network> make_resnet34(const ModelOptions& options) { return make_resnet(options); }
std::unique_ptr<Network> make_resnet50(const ModelOptions& options) {
  return make_resnet(options, {.bottleneck = true});
}

}  // namespace stoker::models
