// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/sampler.h"

#include <algorithm>
#include <numeric>

#include "stoker/base/error.h"
#include "stoker/base/permutation.h"

namespace stoker::data {

Sampler::Sampler(const SamplerOptions& options) : options_(options) {
  if (options.samples < 0) {
    fail<ConfigError>("data.sampler", "samples must not be negative, got {}", options.samples);
  }
  if (options.batch < 1) {
    fail<ConfigError>("data.sampler", "batch must be positive, got {}; set batch=N", options.batch);
  }
  if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks) {
    fail<ConfigError>("data.sampler", "rank {} of {} cannot be", options.rank, options.ranks);
  }
  const std::int64_t tail = options.samples % options.batch;
  steps_ = options.samples / options.batch + (tail > 0 && !options.drop_tail ? 1 : 0);
  if (steps_ == 0 && options.samples > 0) {
    fail<ConfigError>("data.sampler",
                      "batch {} is larger than the {} samples and short batches are dropped: nothing is left;"
                      " set a batch of at most {}",
                      options.batch, options.samples, options.samples);
  }
}

std::int64_t Sampler::global_size(std::int64_t step) const {
  if (step < 0 || step >= steps_) {
    fail<ConfigError>("data.sampler", "step {} is outside an epoch of {} steps", step, steps_);
  }
  return std::min(options_.batch, options_.samples - step * options_.batch);
}

void Sampler::positions(std::int64_t epoch, std::int64_t step, std::vector<std::int64_t>& out) const {
  const std::int64_t size = global_size(step);
  const std::int64_t start = step * options_.batch;
  const std::int64_t first = start + size * options_.rank / options_.ranks;
  const std::int64_t last = start + size * (options_.rank + 1) / options_.ranks;
  out.resize(static_cast<std::size_t>(last - first));
  if (!options_.shuffle) {
    std::iota(out.begin(), out.end(), first);
    return;
  }
  const Permutation order(options_.seed, static_cast<std::uint32_t>(epoch),
                          static_cast<std::uint64_t>(options_.samples));
  order.fill(static_cast<std::uint64_t>(first), out);
}

}  // namespace stoker::data
