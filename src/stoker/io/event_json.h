// SPDX-License-Identifier: Apache-2.0
// Events as the text of JSON objects, the one place that defines their keys; used for metrics.jsonl and --json.
// Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "stoker/core/events.h"

namespace stoker::io {

// One object with the key "event" and the fields of the event, in a fixed order of keys. scalars: the names from
// RunStarted. Numbers are the shortest that read back the same value; NaN and the infinities are the strings "nan",
// "inf", "-inf" (JSON has no such numbers, and Python's float() reads them). Unknown values are left out. place:
// whether RunStarted includes the run's folder and plan, which are known to readers of a file in that folder.
[[nodiscard]] std::string event_json(const core::Event& event, const std::vector<std::string>& scalars,
                                     bool place = true);

}  // namespace stoker::io
