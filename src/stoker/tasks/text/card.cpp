// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/text/card.h"

#include <nlohmann/json.hpp>

namespace stoker::tasks {

nlohmann::json to_json(const models::GptOptions& network) {
  return {{"vocabulary", network.vocabulary}, {"context", network.context}, {"layers", network.layers},
          {"heads", network.heads},           {"width", network.width},     {"dropout", network.dropout}};
}

models::GptOptions network_of(const nlohmann::json& card) {
  const nlohmann::json& json = card.at("network");
  models::GptOptions network;
  network.vocabulary = json.at("vocabulary").get<std::int64_t>();
  network.context = json.at("context").get<std::int64_t>();
  network.layers = json.at("layers").get<int>();
  network.heads = json.at("heads").get<int>();
  network.width = json.at("width").get<std::int64_t>();
  network.dropout = json.at("dropout").get<double>();
  return network;
}

std::vector<std::pair<std::string, std::string>> hugging_face_files(const nlohmann::json& card) {
  const models::GptOptions network = network_of(card);
  const nlohmann::json config = {{"architectures", {"GPT2LMHeadModel"}},
                                 {"model_type", "gpt2"},
                                 {"activation_function", "gelu_new"},
                                 {"layer_norm_epsilon", models::LayerNorm::kEps},
                                 {"tie_word_embeddings", true},
                                 {"vocab_size", network.vocabulary},
                                 {"n_positions", network.context},
                                 {"n_embd", network.width},
                                 {"n_layer", network.layers},
                                 {"n_head", network.heads},
                                 {"bos_token_id", nullptr},
                                 {"eos_token_id", nullptr},
                                 {"attn_pdrop", network.dropout},
                                 {"embd_pdrop", network.dropout},
                                 {"resid_pdrop", network.dropout}};
  std::vector<std::pair<std::string, std::string>> files = {{"config.json", config.dump(2) + "\n"}};
  if (const nlohmann::json& tokenizer = card.at("tokenizer"); tokenizer.contains("tokenizer")) {
    files.emplace_back("tokenizer.json", tokenizer.at("tokenizer").dump());
  }
  return files;
}

}  // namespace stoker::tasks
