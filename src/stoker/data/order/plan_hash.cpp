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
                          "the run was saved under the plan {:016x}, the lengths and options now make {:016x}; give"
                          " those that it was started with, or train anew",
                          saved, now);
  }
}

}  // namespace stoker::data
