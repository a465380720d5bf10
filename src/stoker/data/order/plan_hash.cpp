// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/order/plan_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "stoker/base/error.h"

namespace stoker::data {

std::uint64_t plan_hash(std::span<const std::uint64_t> options, std::span<const std::int64_t> lengths) {
  return XXH3_64bits_withSeed(lengths.data(), lengths.size_bytes(), XXH3_64bits(options.data(), options.size_bytes()));
}

void check_plan(std::string_view where, std::uint64_t saved, std::uint64_t now) {
  if (saved != now) {
    fail<CheckpointError>(where,
                          "the run was saved with plan {:016x}, but the current lengths and options give {:016x}; use"
                          " the original data and options, or start a new run",
                          saved, now);
  }
}

}  // namespace stoker::data
