// SPDX-License-Identifier: Apache-2.0
#include "stoker/models/tabular_mlp.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <cmath>

#include "stoker/base/error.h"
#include "stoker/models/builder.h"

namespace stoker::models {
namespace {

std::int64_t embedding_width(std::int64_t rows) {
  return std::min<std::int64_t>(50, std::llround(std::ceil(1.6 * std::pow(static_cast<double>(rows), 0.56))));
}

}  // namespace

std::unique_ptr<Network> make_tabular_mlp(const TabularMlpOptions& options) {
  if (options.layers < 1 || options.hidden < 1 || options.outputs < 1) {
    fail<ConfigError>("models.tabular_mlp", "layers, hidden and outputs must be at least 1, got {}, {} and {}",
                      options.layers, options.hidden, options.outputs);
  }
  NetworkBuilder builder(options.seed);
  builder.begin_segment("input");
  std::int64_t width = options.numbers;
  std::vector<Embedding> embeddings;
  for (std::size_t i = 0; i < options.categories.size(); ++i) {
    const std::int64_t each = embedding_width(options.categories[i]);
    embeddings.push_back(builder.embedding("embeddings." + std::to_string(i), options.categories[i], each, 0.1));
    width += each;
  }
  if (width < 1) {
    fail<ConfigError>("models.tabular_mlp", "the network has no inputs: numbers is 0 and categories is empty");
  }
  builder.end_list_segment([embeddings](const core::TensorList& inputs) {
    std::vector<at::Tensor> parts = {inputs.at(0)};
    for (std::size_t i = 0; i < embeddings.size(); ++i) {
      parts.push_back(embeddings[i](inputs.at(1).select(1, static_cast<std::int64_t>(i))));
    }
    return core::TensorList{at::cat(parts, 1)};
  });
  for (int layer = 1; layer <= options.layers; ++layer) {
    const std::string name = "layer" + std::to_string(layer);
    builder.begin_segment(name);
    const Linear linear = builder.linear(name, layer == 1 ? width : options.hidden, options.hidden);
    const Dropout dropout = builder.dropout(options.dropout);
    builder.end_segment([linear, dropout](const at::Tensor& x) { return dropout(linear(x).relu_()); });
  }
  builder.begin_segment("head");
  const Linear head = builder.linear("head", options.hidden, options.outputs);
  builder.end_segment([head](const at::Tensor& x) { return head(x); });
  return builder.finish();
}

}  // namespace stoker::models
