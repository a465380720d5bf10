// SPDX-License-Identifier: Apache-2.0
// What pipeline= means for the rest of a plan. Used by resolve() and by runs that go on. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "stoker/train/options.h"
#include "stoker/train/plan.h"

namespace stoker::core {
class Trainable;
}

namespace stoker::train {

struct Facts;

// Pipelines that share each batch: ranks / stages.
[[nodiscard]] inline std::int64_t replicas(const Plan& plan) { return plan.ranks / plan.pipeline; }

// ConfigError if the ranks are no whole number of pipelines.
void check_stages(std::int64_t stages, std::int64_t ranks);
// ConfigError if something in the plan does not work with its pipeline.
void check_pipeline(const Plan& plan, const Options& options);
// The microbatch of a plan that does not ask for one: the batch, or with a pipeline so small that stages seldom wait.
void put_microbatch(Plan& plan, const Facts& facts);

// "layer3,head": names of segments; empty: none are given.
[[nodiscard]] bool is_pipeline_cut(std::string_view text);
// The segments with which the second and later stages begin, by pipeline_cut=. ConfigError if names are no segments,
// are not in their order, or are not one fewer than the stages.
[[nodiscard]] std::vector<int> first_segments(const Plan& plan, const core::Trainable& model);

}  // namespace stoker::train
