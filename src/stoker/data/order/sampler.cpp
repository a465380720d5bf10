// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/order/sampler.h"

#include <numeric>

#include "stoker/base/permutation.h"

namespace stoker::data {

Sampler::Sampler(const SamplerOptions& options)
    : options_(options),
      batches_({.samples = options.samples,
                .batch = options.batch,
                .drop_tail = options.drop_tail,
                .rank = options.rank,
                .ranks = options.ranks}) {}

void Sampler::positions(std::int64_t epoch, std::int64_t step, std::vector<std::int64_t>& out) const {
  const auto [first, last] = batches_.slice(step);
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
