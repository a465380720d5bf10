// SPDX-License-Identifier: Apache-2.0
// Stoker's allocator for CPU tensors: it counts bytes by phase and age, keeps tensors under a cap, and turns exhaustion
// into stoker::OutOfMemory. The CPU's counterpart of CUDA's caching allocator. Installed by job::start_process() and by
// Job; read by the CPU backend. Not seen by it: std::vector, and the scratch memory of oneDNN and MKL. Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "stoker/core/phase.h"

namespace stoker::device {

using BytesByPhase = std::array<std::int64_t, core::kMemoryPhases>;

// Bytes of CPU tensors that were made since the allocator was installed.
struct HostTensors {
  std::int64_t allocated = 0;
  std::int64_t peak = 0;                         // highest `allocated` since reset_host_peak()
  BytesByPhase by_phase{};                       // of `allocated`: the phase of the thread that allocated it
  BytesByPhase peak_phases{};                    // the same at the peak
  core::Phase peak_phase = core::Phase::kOther;  // the phase that reached the peak
};

// From now on torch's CPU tensors come from this allocator; tensors made before keep theirs. A second call changes
// nothing.
void install_host_allocator();
[[nodiscard]] bool host_allocator_installed();

[[nodiscard]] HostTensors host_tensors();
// Only HostTensors::allocated: one atomic read.
[[nodiscard]] std::int64_t host_allocated();
// Of these, the bytes in the heap of the C library; large tensors have pages of their own (device/page_heap.h).
[[nodiscard]] std::int64_t host_allocated_in_heap();
void reset_host_peak();
// Bytes of tensors and of the large blocks that are kept for the next ones.
[[nodiscard]] std::int64_t host_reserved();
// Gives kept blocks, and what the C library can spare, back to the kernel.
void release_host_memory();

// The most that tensors may hold together, in bytes; negative: no cap. In any case what the process may still take
// before the kernel would kill it (device/host_memory.h), which is looked at whenever more is reserved than before:
// then kept blocks are released first. An allocation beyond either throws OutOfMemory. Returns the cap before.
std::int64_t set_host_cap(std::int64_t bytes);
[[nodiscard]] std::int64_t host_cap();

// For a scope of this thread: small tensors that must not fail are taken beyond every cap. For what ranks exchange: one
// that fails there leaves the others waiting.
class BeyondCaps {
 public:
  BeyondCaps();
  ~BeyondCaps();
  BeyondCaps(const BeyondCaps&) = delete;
  BeyondCaps& operator=(const BeyondCaps&) = delete;
};

// The age of tensors counts in steps. Called by the loop before each step.
void begin_host_step();
inline constexpr std::int64_t kHostAges = 256;
// Bytes that are alive, by age and phase: [0] was allocated in this step, [1] in the step before; the last entry holds
// all that is older.
using BytesByAge = std::array<BytesByPhase, kHostAges>;
[[nodiscard]] BytesByAge host_bytes_by_age();

// Sees every allocation: a recording, or a test that makes one fail. Called from any thread, in the middle of torch:
// none of them may allocate tensors.
class AllocationListener {
 public:
  virtual ~AllocationListener() = default;
  // Before an allocation; what it throws is thrown in the thread that asked for memory.
  virtual void before(std::size_t bytes) { (void)bytes; }
  virtual void made(const void* data, std::size_t bytes) noexcept { (void)data, (void)bytes; }
  virtual void freed(const void* data, std::size_t bytes) noexcept { (void)data, (void)bytes; }
};

// One at a time; null: none. Returns the listener before. A listener that is taken away may still be in a call of
// another thread: stop these threads first.
AllocationListener* listen_to_host_allocator(AllocationListener* listener);

}  // namespace stoker::device
