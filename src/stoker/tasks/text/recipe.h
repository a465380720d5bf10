// SPDX-License-Identifier: Apache-2.0
// The defaults of the language model that depend on model, text and device. Called by the text task; no state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/core/plan_row.h"
#include "stoker/models/gpt.h"
#include "stoker/tasks/text/options.h"

namespace stoker::tasks {

// The network's defaults for a model ("gpt", "gpt2"; empty: "gpt"), with the given values over them.
[[nodiscard]] TextTaskOptions with_defaults(const std::string& model, bool cuda, const core::TaskValues& given);
// The network of these values; its vocabulary and seed are still missing.
[[nodiscard]] models::GptOptions text_network(const TextTaskOptions& options);

struct TextFacts {
  std::string model;      // as set, or empty
  std::string optimizer;  // likewise
  std::string tokenizer;  // set or chosen, and the reason
  std::string tokenizer_reason;
  models::GptOptions network;  // text_network(), with its vocabulary
  std::int64_t train_windows = 0, val_windows = 0;
  std::int64_t batch = 0;  // as set; 0: not set
  bool weights = false;    // fine-tuning
  bool cuda = false;
};
// Defaults with reasons: model, batch, epochs, ..., tokenizer, context, ...
[[nodiscard]] std::vector<core::PlanRow> text_recipe(const TextFacts& facts);

}  // namespace stoker::tasks
