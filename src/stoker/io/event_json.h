// SPDX-License-Identifier: Apache-2.0
// Events as JSON objects, the one place that knows their keys: metrics.jsonl and --json are made of these.
// Thread-safe: no state.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "stoker/core/events.h"

namespace stoker::io {

// One object with the key "event" and the event's fields, in a fixed order of keys. scalars: the names that RunStarted
// gave. Numbers are the shortest that read back the same; NaN and the infinities are the strings "nan", "inf", "-inf"
// (JSON has no such numbers, and Python's float() reads them). What is unknown is left out.
[[nodiscard]] nlohmann::ordered_json event_json(const core::Event& event, const std::vector<std::string>& scalars);

}  // namespace stoker::io
