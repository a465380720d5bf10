// SPDX-License-Identifier: Apache-2.0
// One entry of a trace's event array as text, before its values are understood. Filled by EventParser, read by
// TraceBuilder. The views are valid during the call that hands the entry over.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stoker::observe::trace {

// JSON texts of values: 12.5, "X" with its quotes, [[1,2]]. Empty if missing.
struct EventFields {
  std::string_view phase, category, name, process, thread, time, duration;
  // Of "args":
  std::string_view correlation, device, stream, bytes, shapes, types, sequence, python_id, waits_on_stream,
      waits_on_record, label, allocated, reserved, device_type, collective, elements, group_size, element_type, group;
};

// Text of a JSON string without its quotes, escapes as they are; other texts unchanged.
[[nodiscard]] std::string_view without_quotes(std::string_view json);
// A JSON number, or a string that holds one, times 10^digits, rounded to nearest; exact for decimal texts. Empty if it
// is none or beyond 63 bits.
[[nodiscard]] std::optional<std::int64_t> scaled_number(std::string_view json, int digits);

}  // namespace stoker::observe::trace
