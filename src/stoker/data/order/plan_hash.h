// SPDX-License-Identifier: Apache-2.0
// A plan over stored lengths as one number: with the position it is all that a run saves of the plan, which is made
// anew from the same lengths; who saves it checks it. Used by BucketPlan and PackingPlan. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace stoker::data {

// XXH3 of the options that the plan follows from, and of the lengths.
[[nodiscard]] std::uint64_t plan_hash(std::span<const std::uint64_t> options, std::span<const std::int64_t> lengths);
// CheckpointError if a run was saved under another plan.
void check_plan(std::string_view where, std::uint64_t saved, std::uint64_t now);

}  // namespace stoker::data
