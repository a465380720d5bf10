// SPDX-License-Identifier: Apache-2.0
// Hash of a plan made from stored lengths. A run saves only the hash and the position; on resume the plan is rebuilt
// from the same lengths, and the caller checks the hash. Used by BucketPlan and PackingPlan. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace stoker::data {

// XXH3 of the options of the plan and of the lengths.
[[nodiscard]] std::uint64_t plan_hash(std::span<const std::uint64_t> options, std::span<const std::int64_t> lengths);
// CheckpointError if the run was saved with another plan.
void check_plan(std::string_view where, std::uint64_t saved, std::uint64_t now);

}  // namespace stoker::data
