// SPDX-License-Identifier: Apache-2.0
// The facts of a recorded trace: a period for each step that the program marked, or one of the whole trace. Its parts
// are what the first device did (compute, communication, copies), and for its idle time what it waited for; without a
// device, what the main thread did outside operators. Thread-safe: no state.
#pragma once

#include <memory>
#include <vector>

#include "stoker/observe/doctor/facts.h"
#include "stoker/observe/trace/facts/facts.h"

namespace stoker::observe::doctor {

// Parts: "compute", "communication", "copy" (each while the device did nothing else), "overlap"; idle time by the keys
// of trace::doing_key(); "operators" without a device. Words: "idle.fetch.name", the call that most of that idle time
// is charged to. Figures: "idle.fetch.times", pieces of it per step; "kernels.per_step", "kernels.median_seconds",
// "copies.pageable_share", "device.compute_major" (of CUDA's compute capability), and of the time of kernels
// "kernels.plain_product_share" (fp32 without tensor cores), "kernels.tf32_product_share" and "kernels.layout_share"
// (between NCHW and NHWC). "operators.attention_share": attention in separate operators. "kernels.layout_count_share"
// and "operators.attention_count_share" are of the number of kernels, "kernels.plain_convolution_share" is the
// convolutions' part of the products.
[[nodiscard]] Facts trace_facts(const trace::TraceFacts& trace);

// The same of the busiest device's own time, from the begin of its first work to the end of its last, divided into
// equal periods, one per step: a host that is faster than its device marks steps long before the device takes them. The
// trace must have work of a device.
[[nodiscard]] Facts device_facts(const trace::TraceFacts& trace, std::int64_t steps);

// The facts of several ranks of one training, at least two: those of the rank that keeps the others waiting, or else of
// the one with the longest steps. Figures: "ranks.row", its place; "ranks.seen"; and if collectives could be matched,
// "ranks.waiting_share" (mean over ranks, of the time), "ranks.slowest" (rank) and "ranks.slowest_share" (1, or 0 if no
// single rank is the slowest).
[[nodiscard]] Facts ranks_trace_facts(const std::vector<std::unique_ptr<trace::TraceFacts>>& ranks);

}  // namespace stoker::observe::doctor
