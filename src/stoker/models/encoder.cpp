// SPDX-License-Identifier: Apache-2.0
#include "stoker/models/encoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>

#include <array>
#include <string>
#include <string_view>

#include "stoker/base/error.h"
#include "stoker/core/text.h"
#include "stoker/models/builder.h"

namespace stoker::models {
namespace {

constexpr std::string_view kWhere = "models.encoder";
constexpr double kDeviation = 0.02;
constexpr double kNormEps = 1e-12;

void check(const EncoderOptions& options) {
  if (options.vocabulary < 1 || options.context < 1 || options.types < 1 || options.layers < 1 || options.heads < 1 ||
      options.width < 1) {
    fail<ConfigError>(
        kWhere, "vocabulary, context, types, layers, heads and width must be at least 1, got {}, {}, {}, {}, {}, {}",
        options.vocabulary, options.context, options.types, options.layers, options.heads, options.width);
  }
  if (options.width % options.heads != 0) {
    fail<ConfigError>(kWhere, "width {} is not a multiple of {} heads; set a multiple", options.width, options.heads);
  }
  if (options.inner < 0 || options.classes < 0) {
    fail<ConfigError>(kWhere, "inner and classes cannot be negative, got {} and {}", options.inner, options.classes);
  }
}

std::int64_t inner_of(const EncoderOptions& options) { return options.inner > 0 ? options.inner : 4 * options.width; }

void check_inputs(const core::TensorList& inputs, std::int64_t context) {
  const at::Tensor& tokens = inputs.at(0);
  if (tokens.dim() != 2 || tokens.scalar_type() != at::kLong) {
    fail<DataError>(kWhere, "tokens must be int64 [N, T], got {}", core::describe(tokens));
  }
  if (tokens.size(1) > context) {
    fail<DataError>(kWhere, "{} tokens exceed the context of {}", tokens.size(1), context);
  }
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].defined() && inputs[i].sizes() != tokens.sizes()) {
      fail<DataError>(kWhere, "{} must be [{}, {}] as the tokens, got {}", i == 1 ? "seen" : "types", tokens.size(0),
                      tokens.size(1), core::describe(inputs[i]));
    }
  }
}

Linear make_linear(NetworkBuilder& builder, const std::string& name, std::int64_t in, std::int64_t out) {
  return builder.normal_linear(name, in, out, kDeviation);
}

LayerNorm make_norm(NetworkBuilder& builder, const std::string& name, std::int64_t width) {
  return builder.layer_norm(name, width, kNormEps);
}

// The table of the tokens.
Embedding add_embeddings(NetworkBuilder& builder, const EncoderOptions& options) {
  builder.begin_segment("embeddings");
  const std::string name = "bert.embeddings.";
  Embedding table = builder.embedding(name + "word_embeddings", options.vocabulary, options.width, kDeviation);
  const Embedding positions =
      builder.embedding(name + "position_embeddings", options.context, options.width, kDeviation);
  const Embedding types = builder.embedding(name + "token_type_embeddings", options.types, options.width, kDeviation);
  const LayerNorm norm = make_norm(builder, name + "LayerNorm", options.width);
  const Dropout dropout = builder.dropout(options.dropout);
  builder.end_list_segment([=](const core::TensorList& inputs) {
    check_inputs(inputs, positions.weight.size(0));
    const at::Tensor& tokens = inputs[0];
    const bool typed = inputs.size() > 2 && inputs[2].defined();
    const at::Tensor type = typed ? types(inputs[2]) : types.weight.select(0, 0);
    const at::Tensor hidden = table(tokens) + type + positions.weight.slice(0, 0, tokens.size(1));
    core::TensorList outputs{dropout(norm(hidden))};
    if (inputs.size() > 1 && inputs[1].defined()) {
      outputs.push_back(inputs[1].to(at::kBool).unsqueeze(1).unsqueeze(1));
    }
    return outputs;
  });
  return table;
}

at::Tensor take_last(core::TensorList& values) {
  at::Tensor last = std::move(values.at(values.size() - 1));
  values.pop_back();
  return last;
}

// The parts of a block's attention. Between them pass {x, the mask if there is one, what the part before adds}.
struct AttentionParts {
  std::array<Linear, 3> projections;  // query, key, value
  Linear mix;
  Dropout dropout;
  std::int64_t heads;
  ops::AttentionKind kind;

  core::TensorList project(core::TensorList values) const {
    const at::Tensor x = values.at(0);
    for (const Linear& projection : projections) {
      values.push_back(projection(x));
    }
    return values;
  }
  // Softmax attention of every token over all unmasked tokens, and the product after it.
  core::TensorList attend(core::TensorList values) const {
    const std::int64_t rows = values.at(0).size(0), tokens = values[0].size(1), width = values[0].size(2);
    std::array<at::Tensor, 3> by_head;
    for (auto each = by_head.rbegin(); each != by_head.rend(); ++each) {
      *each = take_last(values).view({rows, tokens, heads, width / heads}).transpose(1, 2);
    }
    const bool drops = dropout.mode->training && !dropout.mode->frozen;
    const at::Tensor y =
        ops::attention(by_head[0], by_head[1], by_head[2], values.size() > 1 ? values[1] : at::Tensor(),
                       {.dropout = drops ? dropout.probability : 0, .kind = kind});
    by_head = {};
    values.push_back(mix(y.transpose(1, 2).reshape({rows, tokens, width})));
    return values;
  }
};

// The sum of a block's half, first dropped from, and its norm.
SegmentForward add_and_norm(const Dropout& dropout, const LayerNorm& norm) {
  return [=](core::TensorList values) {
    const at::Tensor y = take_last(values);
    const at::Tensor x = std::move(values.at(0));
    values[0] = norm(x + dropout(y));
    return values;
  };
}

void add_block(NetworkBuilder& builder, const EncoderOptions& options, int layer) {
  const std::string name = "bert.encoder.layer." + std::to_string(layer) + ".";
  const std::int64_t width = options.width, inner = inner_of(options);
  builder.begin_segment("layer" + std::to_string(layer));
  const Dropout dropout = builder.dropout(options.dropout);
  const Linear query = make_linear(builder, name + "attention.self.query", width, width);
  const Linear key = make_linear(builder, name + "attention.self.key", width, width);
  const Linear value = make_linear(builder, name + "attention.self.value", width, width);
  const Linear mix = make_linear(builder, name + "attention.output.dense", width, width);
  const LayerNorm norm1 = make_norm(builder, name + "attention.output.LayerNorm", width);
  const Linear up = make_linear(builder, name + "intermediate.dense", width, inner);
  const Linear down = make_linear(builder, name + "output.dense", inner, width);
  const LayerNorm norm2 = make_norm(builder, name + "output.LayerNorm", width);
  const AttentionParts attention{{query, key, value}, mix, dropout, options.heads, options.attention};
  builder.end_segment_of(
      {{"attention.project", [=](core::TensorList values) { return attention.project(std::move(values)); }},
       {"attention.heads", [=](core::TensorList values) { return attention.attend(std::move(values)); }},
       {"attention.norm", add_and_norm(dropout, norm1)},
       {"mlp.up",
        [=](core::TensorList values) {
          values.push_back(up(values.at(0)));
          return values;
        }},
       {"mlp.gelu",
        [=](core::TensorList values) {
          values.push_back(down(at::gelu(take_last(values))));
          return values;
        }},
       {"mlp.norm", add_and_norm(dropout, norm2)}});
}

void add_token_head(NetworkBuilder& builder, const EncoderOptions& options, const Embedding& table) {
  builder.begin_segment("head");
  const std::string name = "cls.predictions.";
  const at::Tensor bias = builder.bias(name + "bias", options.vocabulary);
  const Linear transform = make_linear(builder, name + "transform.dense", options.width, options.width);
  const LayerNorm norm = make_norm(builder, name + "transform.LayerNorm", options.width);
  builder.tie(table.weight);
  builder.end_segment([=](const at::Tensor& x) {
    return at::linear(norm(at::gelu(transform(x))).to(table.weight.scalar_type()), table.weight, bias);
  });
}

void add_row_head(NetworkBuilder& builder, const EncoderOptions& options) {
  builder.begin_segment("head");
  const Linear pooler = make_linear(builder, "bert.pooler.dense", options.width, options.width);
  const Dropout dropout = builder.dropout(options.dropout);
  const Linear classifier = make_linear(builder, "classifier", options.width, options.classes);
  builder.end_segment([=](const at::Tensor& x) { return classifier(dropout(pooler(x.select(1, 0)).tanh_())); });
}

// "" for tensors that are ignored.
std::string name_here(std::string name, bool classifies) {
  const auto replace_end = [&](std::string_view old, std::string_view now) {
    if (name.ends_with(old)) {
      name.replace(name.size() - old.size(), old.size(), now);
    }
  };
  replace_end(".gamma", ".weight");
  replace_end(".beta", ".bias");
  if (name.starts_with("embeddings.") || name.starts_with("encoder.") || name.starts_with("pooler.")) {
    name.insert(0, "bert.");
  }
  const bool other_head = classifies ? name.starts_with("cls.")
                                     : name.starts_with("bert.pooler.") || name.starts_with("cls.seq_relationship.") ||
                                           name.starts_with("cls.predictions.decoder.");
  return other_head || name == "bert.embeddings.position_ids" ? "" : name;
}

}  // namespace

std::unique_ptr<Network> make_encoder(const EncoderOptions& options) {
  check(options);
  NetworkBuilder builder(options.seed);
  const Embedding table = add_embeddings(builder, options);
  for (int layer = 0; layer < options.layers; ++layer) {
    add_block(builder, options, layer);
  }
  if (options.classes > 0) {
    add_row_head(builder, options);
  } else {
    add_token_head(builder, options, table);
  }
  builder.read_names(
      [classifies = options.classes > 0](const std::string& name) { return name_here(name, classifies); });
  return builder.finish();
}

std::int64_t encoder_flops(const EncoderOptions& options) {
  const std::int64_t width = options.width, tokens = options.context;
  const std::int64_t block = 4 * width * width + 2 * width * inner_of(options);
  const std::int64_t token_head = tokens * (width * width + width * options.vocabulary);
  const std::int64_t head = options.classes > 0 ? width * width + width * options.classes : token_head;
  return 2 * (tokens * options.layers * block + head) + 4 * options.layers * tokens * tokens * width;
}

}  // namespace stoker::models
