// SPDX-License-Identifier: Apache-2.0
// The state and the history of torch's CUDA allocator, as https://pytorch.org/memory_viz reads them. Used by
// job::MemoryWatch for the step that it records. A CPU has none: its allocator keeps no blocks. One thread.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

namespace stoker::device {

// Free parts of blocks that are in use, in bytes: the cost of fragmentation. -1 if unknown, as on a CPU.
[[nodiscard]] std::int64_t inactive_bytes(c10::Device device);

// Whether there is something to record for this kind of device.
[[nodiscard]] bool can_snapshot_memory(c10::Device device);
// From now on the allocator keeps a history; false: no longer. No effect without one.
void keep_memory_history(c10::Device device, bool on);
// The pickled snapshot: what the allocator holds, and the history since it is kept. Empty without one.
[[nodiscard]] std::string memory_snapshot(c10::Device device);

}  // namespace stoker::device
