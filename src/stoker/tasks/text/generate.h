// SPDX-License-Identifier: Apache-2.0
// Generates text with a language model, token by token. Used by the language-model task during training, and through it
// by `stoker generate`. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "stoker/data/text/tokenizer.h"
#include "stoker/tasks/task.h"
#include "stoker/tasks/text/model.h"

namespace stoker::tasks {

// The index that a draw in [0, 1) selects: among the top_k largest logits (0: all), divided by temperature (0: the
// largest). logits: float32 [vocabulary] on the CPU; the first of equal ones counts as the larger.
[[nodiscard]] std::int64_t choose_token(const at::Tensor& logits, double temperature, std::int64_t top_k, double draw);

// Generates text after the prompt (after a line end if it is empty) and passes each token's bytes to take, until take
// returns false. The model, in evaluation mode, sees the last context tokens. Equal requests give equal texts on one
// machine: draw n is addressed by (seed, sample, n). DataError for a prompt that the tokenizer cannot encode.
void generate(TextModel& model, const data::Tokenizer& tokenizer, std::int64_t context, const GenerateRequest& request,
              const std::function<bool(std::string_view)>& take);

}  // namespace stoker::tasks
