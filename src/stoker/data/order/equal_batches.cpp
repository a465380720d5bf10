// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/order/equal_batches.h"

#include <algorithm>

#include "stoker/base/error.h"

namespace stoker::data {

void check_rank(int rank, int ranks) {
  if (ranks < 1 || rank < 0 || rank >= ranks) {
    fail<ConfigError>("data.sampler", "rank {} of {} ranks is out of range", rank, ranks);
  }
}

EqualBatches::Slice slice_of_rank(std::int64_t first, std::int64_t size, int rank, int ranks) {
  return {first + size * rank / ranks, first + size * (rank + 1) / ranks};
}

EqualBatches::EqualBatches(const Options& options) : options_(options) {
  if (options.samples < 0) {
    fail<ConfigError>("data.sampler", "samples must not be negative, got {}", options.samples);
  }
  if (options.batch < 1) {
    fail<ConfigError>("data.sampler", "batch must be positive, got {}; set batch=N", options.batch);
  }
  check_rank(options.rank, options.ranks);
  const std::int64_t tail = options.samples % options.batch;
  steps_ = options.samples / options.batch + (tail > 0 && !options.drop_tail ? 1 : 0);
  if (steps_ == 0 && options.samples > 0) {
    fail<ConfigError>("data.sampler",
                      "batch {} is larger than the {} samples, and short batches are dropped, so no batch is left;"
                      " set a batch of at most {}",
                      options.batch, options.samples, options.samples);
  }
}

std::int64_t EqualBatches::global_size(std::int64_t step) const {
  if (step < 0 || step >= steps_) {
    fail<ConfigError>("data.sampler", "step {} is out of range; an epoch has {} steps", step, steps_);
  }
  return std::min(options_.batch, options_.samples - step * options_.batch);
}

EqualBatches::Slice EqualBatches::slice(std::int64_t step) const {
  return slice_of_rank(step * options_.batch, global_size(step), options_.rank, options_.ranks);
}

}  // namespace stoker::data
