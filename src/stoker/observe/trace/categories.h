// SPDX-License-Identifier: Apache-2.0
// The words that profilers use for kinds of events. Names of ten years and several devices: Kineto and torch.profiler
// for CUDA and ROCm, their older versions, and the profilers of other accelerators. Thread-safe: no state.
#pragma once

#include <string_view>

#include "stoker/observe/trace/trace.h"

namespace stoker::observe::trace {

// By the category's word: "cpu_op" or "Operator". on_stream: the event says which stream of a device it belongs to.
[[nodiscard]] Kind kind_of_category(std::string_view category, bool on_stream);
// Corrects the kind by the event's name: older versions call ranges of the program operators.
[[nodiscard]] Kind kind_of_name(Kind by_category, std::string_view name);

// What the work of a device is for, by the name of the kernel.
enum class Work : std::uint8_t { kCompute, kCommunication, kMemory };
[[nodiscard]] Work work_of(Kind kind, std::string_view name);
[[nodiscard]] std::string_view work_name(Work work);

// A step that torch.profiler marked: "ProfilerStep#12".
[[nodiscard]] bool is_step(std::string_view name);

}  // namespace stoker::observe::trace
