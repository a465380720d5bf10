// SPDX-License-Identifier: Apache-2.0
// Records of a Weights & Biases run as serialized protobuf messages, with the field numbers of wandb_internal.proto
// (wandb 0.24). Used by the W&B sink. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "stoker/core/plan_row.h"

namespace stoker::io {

// Keys and values as JSON, the way W&B keeps them: NaN and infinities are NaN, Infinity and -Infinity.
using WandbItems = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] std::string wandb_json(double value);
[[nodiscard]] std::string wandb_json(float value);
[[nodiscard]] std::string wandb_json(std::string_view text);

struct WandbRun {
  std::string id, entity, project, name, notes, host;
  std::vector<core::PlanRow> plan;  // its configuration
  double start = 0;                 // seconds since 1970
  std::int64_t first_step = 0;      // of this session; not 0: resumed
};

// number: of the record in its file, from 1.
[[nodiscard]] std::string wandb_header(std::int64_t number);
[[nodiscard]] std::string wandb_run(std::int64_t number, const WandbRun& run);
[[nodiscard]] std::string wandb_history(std::int64_t number, std::int64_t step, const WandbItems& items);
[[nodiscard]] std::string wandb_summary(std::int64_t number, const WandbItems& items);
// Figures of the machine. time: seconds since 1970.
[[nodiscard]] std::string wandb_stats(std::int64_t number, double time, const WandbItems& items);
[[nodiscard]] std::string wandb_exit(std::int64_t number, std::int32_t code, double seconds);

}  // namespace stoker::io
