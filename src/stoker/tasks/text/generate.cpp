// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/text/generate.h"

#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "stoker/base/counter_rng.h"
#include "stoker/base/error.h"

namespace stoker::tasks {
namespace {

// "" starts a text: after a line end if the tokenizer has one, else after the first token.
std::vector<std::int32_t> encode_prompt(const data::Tokenizer& tokenizer, const std::string& prompt) {
  std::vector<std::int32_t> ids;
  if (!prompt.empty()) {
    ids = tokenizer.encode(prompt);
  } else {
    try {
      ids = tokenizer.encode("\n");
    } catch (const DataError&) {  // characters of a text of one line
    }
  }
  if (ids.empty()) {  // also if a tokenizer drops white space
    ids.push_back(0);
  }
  return ids;
}

}  // namespace

std::int64_t choose_token(const at::Tensor& logits, double temperature, std::int64_t top_k, double draw) {
  const auto* values = logits.const_data_ptr<float>();
  std::vector<std::int64_t> order(static_cast<std::size_t>(logits.numel()));
  std::iota(order.begin(), order.end(), 0);
  const std::size_t count = temperature == 0 ? 1
                            : top_k == 0     ? order.size()
                                             : std::min(order.size(), static_cast<std::size_t>(top_k));
  const auto larger = [&](std::int64_t a, std::int64_t b) {
    return values[a] > values[b] || (values[a] == values[b] && a < b);
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(), larger);
  std::vector<double> weights(count, 1);
  for (std::size_t i = 1; i < count; ++i) {
    weights[i] = std::exp((static_cast<double>(values[order[i]]) - values[order[0]]) / temperature);
  }
  double left = draw * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i + 1 < count; ++i) {
    if ((left -= weights[i]) < 0) {
      return order[i];
    }
  }
  return order[count - 1];
}

void generate(TextModel& model, const data::Tokenizer& tokenizer, std::int64_t context, const GenerateRequest& request,
              const std::function<bool(std::string_view)>& take) {
  const c10::InferenceMode inference;
  std::vector<std::int32_t> ids = encode_prompt(tokenizer, request.prompt);
  const at::Device device = model.network().device();
  for (std::int64_t n = 0; n < request.tokens; ++n) {
    const std::size_t seen = std::min(ids.size(), static_cast<std::size_t>(context));
    const std::vector<std::int64_t> last(ids.end() - static_cast<std::ptrdiff_t>(seen), ids.end());
    const at::Tensor logits = model.next_logits(at::tensor(last, at::kLong).unsqueeze(0).to(device));
    CounterRng rng(request.seed, request.sample, static_cast<std::uint64_t>(n), RandomOp::kToken);
    const std::int64_t next = choose_token(logits, request.temperature, request.top_k, rng.uniform());
    ids.push_back(static_cast<std::int32_t>(next));
    if (!take(tokenizer.decode({&ids.back(), 1}))) {
      return;
    }
  }
}

}  // namespace stoker::tasks
