// SPDX-License-Identifier: Apache-2.0
#include "stoker/models/gpt.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>

#include <cmath>
#include <string>
#include <string_view>

#include "stoker/base/error.h"
#include "stoker/models/builder.h"

namespace stoker::models {
namespace {

constexpr std::string_view kWhere = "models.gpt";
constexpr double kDeviation = 0.02;

void check(const GptOptions& options) {
  if (options.vocabulary < 1 || options.context < 1 || options.layers < 1 || options.heads < 1 || options.width < 1) {
    fail<ConfigError>(kWhere, "vocabulary, context, layers, heads and width must be at least 1, got {}, {}, {}, {}, {}",
                      options.vocabulary, options.context, options.layers, options.heads, options.width);
  }
  if (options.width % options.heads != 0) {
    fail<ConfigError>(kWhere, "width {} is not a multiple of {} heads; set a multiple", options.width, options.heads);
  }
}

// Softmax attention of every token over itself and earlier tokens.
struct CausalAttention {
  Projection c_attn, c_proj;
  Dropout dropout;
  std::int64_t heads;
  ops::AttentionKind kind;

  at::Tensor operator()(const at::Tensor& x) const {
    const std::int64_t rows = x.size(0), tokens = x.size(1), width = x.size(2);
    const std::vector<at::Tensor> parts = c_attn(x).split(width, 2);
    const auto by_head = [&](const at::Tensor& part) {
      return part.view({rows, tokens, heads, width / heads}).transpose(1, 2);
    };
    const bool drops = dropout.mode->training && !dropout.mode->frozen;
    const at::Tensor y = ops::attention(by_head(parts[0]), by_head(parts[1]), by_head(parts[2]), {},
                                        {.causal = true, .dropout = drops ? dropout.probability : 0, .kind = kind});
    return dropout(c_proj(y.transpose(1, 2).reshape({rows, tokens, width})));
  }
};

void add_embeddings(NetworkBuilder& builder, const GptOptions& options, Embedding& table) {
  builder.begin_segment("embeddings");
  table = builder.embedding("wte", options.vocabulary, options.width, kDeviation);
  const Embedding positions = builder.embedding("wpe", options.context, options.width, kDeviation);
  const Dropout dropout = builder.dropout(options.dropout);
  builder.end_segment([table, positions, dropout](const at::Tensor& tokens) {
    if (tokens.size(1) > positions.weight.size(0)) {
      fail<DataError>(kWhere, "{} tokens exceed the context of {}", tokens.size(1), positions.weight.size(0));
    }
    return dropout(table(tokens) + positions.weight.slice(0, 0, tokens.size(1)));
  });
}

void add_block(NetworkBuilder& builder, const GptOptions& options, int layer) {
  const std::string name = "h." + std::to_string(layer);
  const std::int64_t width = options.width;
  const double residual = kDeviation / std::sqrt(2.0 * options.layers);
  builder.begin_segment(name);
  const Dropout dropout = builder.dropout(options.dropout);
  const LayerNorm ln_1 = builder.layer_norm(name + ".ln_1", width);
  const Projection c_attn = builder.projection(name + ".attn.c_attn", width, 3 * width, kDeviation);
  const Projection c_proj = builder.projection(name + ".attn.c_proj", width, width, residual);
  const LayerNorm ln_2 = builder.layer_norm(name + ".ln_2", width);
  const Projection up = builder.projection(name + ".mlp.c_fc", width, 4 * width, kDeviation);
  const Projection down = builder.projection(name + ".mlp.c_proj", 4 * width, width, residual);
  const CausalAttention attention{
      .c_attn = c_attn, .c_proj = c_proj, .dropout = dropout, .heads = options.heads, .kind = options.attention};
  const auto attend = [=](const core::TensorList& values) {
    const at::Tensor& x = values.at(0);
    return core::TensorList{x + attention(ln_1(x))};
  };
  const auto mlp = [=](const core::TensorList& values) {
    const at::Tensor& y = values.at(0);
    return core::TensorList{y + dropout(down(at::gelu(up(ln_2(y)), "tanh")))};
  };
  builder.end_segment_of({{"attention", attend}, {"mlp", mlp}});
}

// "" for tensors that are ignored.
std::string name_here(std::string name) {
  constexpr std::string_view kPrefix = "transformer.";
  if (name.starts_with(kPrefix)) {
    name.erase(0, kPrefix.size());
  }
  return name == "lm_head.weight" || name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ? "" : name;
}

}  // namespace

std::unique_ptr<Network> make_gpt(const GptOptions& options) {
  check(options);
  NetworkBuilder builder(options.seed);
  Embedding table;
  add_embeddings(builder, options, table);
  for (int layer = 0; layer < options.layers; ++layer) {
    add_block(builder, options, layer);
  }
  builder.begin_segment("head");
  const LayerNorm ln_f = builder.layer_norm("ln_f", options.width);
  builder.tie(table.weight);
  builder.end_list_segment([table, ln_f, open = options.open_head](core::TensorList inputs) {
    const at::Tensor hidden = ln_f(inputs.at(0));
    return open ? core::TensorList{hidden, table.weight}
                : core::TensorList{at::linear(hidden.to(table.weight.scalar_type()), table.weight)};
  });
  builder.read_names(name_here);
  return builder.finish();
}

std::int64_t gpt_flops(const GptOptions& options) {
  const std::int64_t weights = 12 * options.layers * options.width * options.width + options.vocabulary * options.width;
  return 2 * options.context * weights + 4 * options.layers * options.context * options.context * options.width;
}

}  // namespace stoker::models
