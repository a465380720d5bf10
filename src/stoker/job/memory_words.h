// SPDX-License-Identifier: Apache-2.0
// What a leak is called, and what to do about it. Used by job::MemoryWatch. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>

#include "stoker/memory/leak_watch.h"
#include "stoker/memory/step_record.h"

namespace stoker::job {

// Tensors that grow on the device, or on a CPU in the host's memory. left: of the step that was traced; step: its
// number, counted from 1.
[[nodiscard]] std::string tensor_leak(const memory::Growth& growth, const std::optional<memory::LeakOrigin>& origin,
                                      const memory::Leftovers& left, std::int64_t step);
// Host memory outside tensors that grows.
[[nodiscard]] std::string heap_leak(const memory::Growth& growth, const memory::Leftovers& left, std::int64_t step);

}  // namespace stoker::job
