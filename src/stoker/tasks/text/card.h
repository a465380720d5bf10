// SPDX-License-Identifier: Apache-2.0
// The card of a language model's network, and the same for other programs. Used by the text task. Thread-safe: no
// state.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "stoker/models/gpt.h"

namespace stoker::tasks {

// "network" of the card (docs/formats.md) and back; nlohmann::json::exception for a card without it.
[[nodiscard]] nlohmann::json to_json(const models::GptOptions& network);
[[nodiscard]] models::GptOptions network_of(const nlohmann::json& card);

// Files, name and content, for loading the weights with Hugging Face's GPT2LMHeadModel.from_pretrained(), and the
// tokenizer with its AutoTokenizer if it is a tokenizer.json.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> hugging_face_files(const nlohmann::json& card);

}  // namespace stoker::tasks
