// SPDX-License-Identifier: Apache-2.0
// Curves as the JSON that charts.js draws. Used by the report. Thread-safe: no state.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "stoker/io/report/downsample.h"

namespace stoker::io {

// Six digits are enough for a screen. null: no value; "nan": a value that was not finite.
[[nodiscard]] nlohmann::ordered_json json_number(std::optional<double> value);
// Means, and minimum and maximum unless every bucket is one row; null if there is no value. middle: instead of the
// mean.
[[nodiscard]] nlohmann::ordered_json curve_json(const Downsample& points, std::size_t column,
                                                const std::function<double(const RowBucket&)>& middle = {});
// Positions of the points: first and last step of each bucket, and its last row's time.
[[nodiscard]] nlohmann::ordered_json places_json(const Downsample& points);

}  // namespace stoker::io
