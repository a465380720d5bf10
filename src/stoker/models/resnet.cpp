// SPDX-License-Identifier: Apache-2.0
#include "stoker/models/resnet.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>

#include <array>
#include <optional>

#include "stoker/base/fmt.h"
#include "stoker/models/builder.h"

namespace stoker::models {
namespace {

using Forward = std::function<at::Tensor(const at::Tensor&)>;

struct ResnetShape {
  std::array<int, 4> blocks;  // residual blocks of layer1 ... layer4
  bool bottleneck;            // 1x1, 3x3, 1x1 to four times the width, instead of 3x3, 3x3
};

struct BlockShape {
  std::int64_t in, width, out, stride;
};

// The way around a block: nothing, or a 1x1 convolution where shape changes.
Forward make_shortcut(NetworkBuilder& builder, const std::string& name, const BlockShape& shape) {
  if (shape.stride == 1 && shape.in == shape.out) {
    return [](const at::Tensor& x) { return x; };
  }
  const Conv2d conv = builder.conv(
      name + ".downsample.0", {.in = shape.in, .out = shape.out, .kernel = 1, .stride = shape.stride, .padding = 0});
  const BatchNorm2d norm = builder.batch_norm(name + ".downsample.1", shape.out);
  return [=](const at::Tensor& x) { return norm(conv(x)); };
}

Forward make_basic_block(NetworkBuilder& builder, const std::string& name, const BlockShape& shape) {
  const Conv2d conv1 = builder.conv(name + ".conv1", {.in = shape.in, .out = shape.width, .stride = shape.stride});
  const BatchNorm2d bn1 = builder.batch_norm(name + ".bn1", shape.width);
  const Conv2d conv2 = builder.conv(name + ".conv2", {.in = shape.width, .out = shape.out});
  const BatchNorm2d bn2 = builder.batch_norm(name + ".bn2", shape.out);
  const Forward shortcut = make_shortcut(builder, name, shape);
  return [=](const at::Tensor& x) {
    at::Tensor y = bn2(conv2(bn1(conv1(x)).relu_()));
    return y.add_(shortcut(x)).relu_();
  };
}

Forward make_bottleneck(NetworkBuilder& builder, const std::string& name, const BlockShape& shape) {
  const Conv2d conv1 = builder.conv(name + ".conv1", {.in = shape.in, .out = shape.width, .kernel = 1, .padding = 0});
  const BatchNorm2d bn1 = builder.batch_norm(name + ".bn1", shape.width);
  const Conv2d conv2 = builder.conv(name + ".conv2", {.in = shape.width, .out = shape.width, .stride = shape.stride});
  const BatchNorm2d bn2 = builder.batch_norm(name + ".bn2", shape.width);
  const Conv2d conv3 = builder.conv(name + ".conv3", {.in = shape.width, .out = shape.out, .kernel = 1, .padding = 0});
  const BatchNorm2d bn3 = builder.batch_norm(name + ".bn3", shape.out);
  const Forward shortcut = make_shortcut(builder, name, shape);
  return [=](const at::Tensor& x) {
    at::Tensor y = bn2(conv2(bn1(conv1(x)).relu_())).relu_();
    return bn3(conv3(y)).add_(shortcut(x)).relu_();
  };
}

// One of layer1 ... layer4; its first block changes width and, from layer2 on, halves the resolution.
Forward make_layer(NetworkBuilder& builder, int layer, const ResnetShape& shape) {
  const std::int64_t expansion = shape.bottleneck ? 4 : 1;
  const std::int64_t width = std::int64_t{64} << (layer - 1);
  std::vector<Forward> blocks;
  for (int block = 0; block < shape.blocks[layer - 1]; ++block) {
    const std::int64_t in = block > 0 ? width * expansion : layer == 1 ? 64 : width / 2 * expansion;
    const BlockShape block_shape{in, width, width * expansion, block == 0 && layer > 1 ? 2 : 1};
    const std::string name = fmt::format("layer{}.{}", layer, block);
    blocks.push_back(shape.bottleneck ? make_bottleneck(builder, name, block_shape)
                                      : make_basic_block(builder, name, block_shape));
  }
  return [blocks = std::move(blocks)](const at::Tensor& x) {
    at::Tensor y = x;
    for (const Forward& block : blocks) {
      y = block(y);
    }
    return y;
  };
}

std::unique_ptr<Network> make_resnet(const ModelOptions& options, const ResnetShape& shape) {
  NetworkBuilder builder(options.seed);
  builder.begin_segment("stem");
  const Conv2d conv1 =
      builder.conv("conv1", {.in = options.channels, .out = 64, .kernel = 7, .stride = 2, .padding = 3});
  const BatchNorm2d bn1 = builder.batch_norm("bn1", 64);
  builder.end_segment([=](const at::Tensor& x) {
    return at::max_pool2d(bn1(conv1(x)).relu_(), {3, 3}, {2, 2}, {1, 1});
  });

  for (int layer = 1; layer <= 4; ++layer) {
    builder.begin_segment(fmt::format("layer{}", layer));
    builder.end_segment(make_layer(builder, layer, shape));
  }

  builder.begin_segment("head");
  const Linear fc = builder.linear("fc", shape.bottleneck ? 2048 : 512, options.classes);
  builder.end_segment([=](const at::Tensor& x) { return fc(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1)); });
  return builder.finish();
}

}  // namespace

std::unique_ptr<Network> make_resnet18(const ModelOptions& options) {
  return make_resnet(options, {{2, 2, 2, 2}, false});
}
std::unique_ptr<Network> make_resnet34(const ModelOptions& options) {
  return make_resnet(options, {{3, 4, 6, 3}, false});
}
std::unique_ptr<Network> make_resnet50(const ModelOptions& options) {
  return make_resnet(options, {{3, 4, 6, 3}, true});
}

}  // namespace stoker::models
