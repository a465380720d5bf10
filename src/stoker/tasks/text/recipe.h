// SPDX-License-Identifier: Apache-2.0
// The defaults and settings of the language-model task: what a run on text does that nobody asked for, by model and
// device. Called by text_task; no state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/core/plan_row.h"
#include "stoker/core/task_setting.h"
#include "stoker/models/gpt.h"

namespace stoker::tasks {

// The network that settings describe; what is not among them is the default of model ("gpt", "gpt2"; empty: "gpt").
[[nodiscard]] models::GptOptions text_network(const std::string& model, bool cuda, const core::TaskValues& own);

struct TextFacts {
  std::string model;      // asked for, or empty
  std::string optimizer;  // likewise
  std::string tokenizer;  // asked for or chosen, and why
  std::string tokenizer_reason;
  models::GptOptions network;  // text_network(), with its vocabulary
  std::int64_t train_windows = 0, val_windows = 0;
  std::int64_t batch = 0;  // asked for; 0: not
  bool weights = false;    // fine-tuning
  bool cuda = false;
};
// Defaults with reasons: model, batch, epochs, ..., and each of text_settings().
[[nodiscard]] std::vector<core::PlanRow> text_recipe(const TextFacts& facts);

[[nodiscard]] std::vector<core::TaskSetting> text_settings();

}  // namespace stoker::tasks
