// SPDX-License-Identifier: Apache-2.0
// All options of the language model, on one page with options.cpp: parsed once, then read as plain fields.
#pragma once

#include <cstdint>
#include <string>

#include "stoker/core/option_table.h"
#include "stoker/tasks/sampling.h"

namespace stoker::tasks {

struct TextTaskOptions : OrderOptions {
  std::string tokenizer;  // "bytes", "characters" or a file; empty: chosen by the text
  std::int64_t context = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t width = 0;
  double dropout = 0;
  std::int64_t loss_chunk = 0;     // tokens; 0: all
  std::int64_t sample_tokens = 0;  // 0: no samples
  std::string sample_prompt;
  double sample_temperature = 0.8;
  std::int64_t sample_top_k = 200;
};

[[nodiscard]] const core::OptionTable<TextTaskOptions>& text_options();

}  // namespace stoker::tasks
