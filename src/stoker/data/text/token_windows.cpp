// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/text/token_windows.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "stoker/base/counter_rng.h"
#include "stoker/base/error.h"
#include "stoker/core/text.h"

namespace stoker::data {
namespace {

constexpr std::string_view kWhere = "data.token_windows";
constexpr std::int64_t kUncounted = -100;  // PyTorch's index for targets that the loss ignores

SamplerOptions sampler_options(const TokenWindowsOptions& options) {
  const at::Tensor& tokens = options.tokens;
  if (tokens.dim() != 1 || tokens.scalar_type() != at::kInt || !tokens.is_contiguous() || options.context < 1) {
    fail<ConfigError>(kWhere, "expected int32 [N] tokens and a context of at least 1, got {} and {}",
                      core::describe(tokens), options.context);
  }
  if (tokens.numel() < (options.train ? options.context + 1 : 2)) {
    fail<DataError>(kWhere, "{} tokens are too few for a window of {} plus the next token; set context={} or less",
                    tokens.numel(), options.context, std::max<std::int64_t>(1, tokens.numel() - 1));
  }
  SamplerOptions sampler;
  sampler.samples = window_count(tokens.numel(), options.context, options.train);
  sampler.batch = options.batch;
  sampler.seed = options.seed;
  sampler.shuffle = options.train && options.shuffle;
  sampler.drop_tail = options.drop_tail;
  sampler.rank = options.rank;
  sampler.ranks = options.ranks;
  return sampler;
}

}  // namespace

std::int64_t window_count(std::int64_t tokens, std::int64_t context, bool train) {
  return train ? std::max<std::int64_t>(1, (tokens - context) / context) : (tokens - 1 + context - 1) / context;
}

TokenWindows::TokenWindows(TokenWindowsOptions options)
    : options_(std::move(options)), sampler_(sampler_options(options_)), position_(options_.start) {}

std::int64_t TokenWindows::shift(std::int64_t epoch) const {
  if (!options_.train) {
    return 0;
  }
  const std::int64_t last = options_.tokens.numel() - 1;  // the last target
  const std::int64_t room = last - window_count(last + 1, options_.context, true) * options_.context;
  CounterRng rng(options_.seed, static_cast<std::uint32_t>(epoch), 0, RandomOp::kWindow);
  return rng.below(static_cast<std::uint32_t>(std::min(room, options_.context - 1) + 1));
}

std::optional<core::Batch> TokenWindows::next() {
  if (position_.step >= sampler_.steps_per_epoch()) {
    position_ = {position_.epoch + 1, 0};
    return std::nullopt;
  }
  sampler_.positions(position_.epoch, position_.step, windows_);
  const std::int64_t rows = static_cast<std::int64_t>(windows_.size()), context = options_.context;
  const at::Tensor ids = at::empty({rows, context}, at::kLong), target = at::empty({rows, context}, at::kLong);
  auto* id = ids.mutable_data_ptr<std::int64_t>();
  auto* next_id = target.mutable_data_ptr<std::int64_t>();
  const auto* tokens = options_.tokens.const_data_ptr<std::int32_t>();
  const std::int64_t shifted = shift(position_.epoch), last = options_.tokens.numel() - 1;
  for (const std::int64_t window : windows_) {
    const std::int64_t first = window * context + shifted;
    for (std::int64_t i = first; i < first + context; ++i) {
      *id++ = i <= last ? tokens[i] : 0;
      *next_id++ = i < last ? tokens[i + 1] : kUncounted;
    }
  }
  core::Batch batch(position_, windows_);
  const std::int64_t global = sampler_.global_size(position_.epoch, position_.step);
  batch.set_part(slice_of_rank(0, global, options_.rank, options_.ranks).first, global);
  batch.set("ids", ids);
  batch.set("target", target);
  ++position_.step;
  return batch;
}

}  // namespace stoker::data
