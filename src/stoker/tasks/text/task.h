// SPDX-License-Identifier: Apache-2.0
// A text with a plan's options, or with a trained model's card: trains and evaluates language models. Made by the kind
// of task.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "stoker/tasks/text/data.h"
#include "stoker/tasks/text/options.h"

namespace stoker::tasks {

[[nodiscard]] std::unique_ptr<ReadyTask> ready_text(TextFiles files, TextTaskOptions options);

// The model described by a card, with initial weights.
[[nodiscard]] std::unique_ptr<Model> restore_text_model(const ModelRequest& request, const nlohmann::json& card);
// Generates text with the model of a card. ConfigError if a derived kind uses another model.
void generate_from_card(Model& model, const nlohmann::json& card, const GenerateRequest& request,
                        const std::function<bool(std::string_view)>& take);

}  // namespace stoker::tasks
