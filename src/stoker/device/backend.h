// SPDX-License-Identifier: Apache-2.0
// What the engine needs from a device beyond ATen: memory figures, events, facts for people, its place on the bus. The
// CPU backend is always available; libstoker_cuda adds the CUDA backend (device/cuda_library.h). Used by train, memory,
// observe and job through backend_for(). Every member may be called from any thread; an Event by one thread at a time.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::core {
struct LossWork;  // core/step_work.h
struct VerdictWork;
}  // namespace stoker::core

namespace stoker::device {

// Bytes; -1 if unknown. On a CPU tensors are counted by device/host_allocator.h, and unknown before it is installed.
struct MemoryFigures {
  std::int64_t allocated = -1;  // held by tensors
  std::int64_t reserved = -1;   // held by the device's caching allocator, tensors included
  std::int64_t peak = -1;       // highest `allocated` since the last reset_peak()
  std::int64_t free = -1;       // what tensors may still take: under a cap, of the device (CUDA), of the limit (CPU)
  std::int64_t total = -1;      // CUDA: the device's memory. CPU: the smaller of memory limit and RAM
};

struct DeviceFacts {
  std::string name;                // "NVIDIA H200", "Intel(R) Xeon(R) ..."
  std::string driver;              // "CUDA 13.0 driver, runtime 13.0"; empty on a CPU
  std::string compute_capability;  // "9.0"; empty on a CPU
  int cores = 0;                   // multiprocessors, or cores that this process may use
  std::int64_t memory_bytes = -1;
  bool fast_bf16 = false;          // matrix units for bfloat16: AMX or AVX512-BF16, compute capability 8.0 and later
  std::vector<std::string> flags;  // relevant CPU flags: "avx2", "avx512_bf16", "amx_bf16", ...
};

// A point in the work of a device's current stream. On a CPU work is done when the call returns, so an event is
// complete as soon as it is recorded.
class Event {
 public:
  virtual ~Event() = default;
  // Marks the current stream of the device; a second call replaces the earlier mark.
  virtual void record() = 0;
  // The calling thread waits until the work before the mark is done; returns at once if nothing was recorded.
  virtual void wait() const = 0;
  // Whether wait() would return at once.
  [[nodiscard]] virtual bool ready() const = 0;
  // Milliseconds between two recorded events of one device; waits for both. DeviceError if one was not recorded or was
  // made without timing.
  [[nodiscard]] virtual double elapsed_ms(const Event& earlier) const = 0;
};

class CopyStream;  // device/copy_stream.h

class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;  // "cpu", "cuda"
  [[nodiscard]] virtual int device_count() const = 0;
  [[nodiscard]] virtual c10::Device default_device() const = 0;
  [[nodiscard]] virtual MemoryFigures memory(c10::Device device) const = 0;
  // Only memory().allocated: takes microseconds, for a value that is shown during a run.
  [[nodiscard]] virtual std::int64_t allocated(c10::Device device) const = 0;
  // CUDA: allocations so far that succeeded only after the cache was released, each a wait for the device; -1 on a CPU.
  // Takes microseconds.
  [[nodiscard]] virtual std::int64_t retries(c10::Device device) const = 0;
  // Restarts memory().peak.
  virtual void reset_peak(c10::Device device) const = 0;
  // The most that tensors on the device may hold, in bytes; 0: no limit of ours. More is an out-of-memory error.
  virtual void limit_memory(c10::Device device, std::int64_t bytes) const = 0;
  // Gives unused memory that torch or the C library keeps back to the device or the system. Slow: for a step that ran
  // out of memory.
  virtual void release_cache(c10::Device device) const = 0;
  // Waits for everything on the device. Never called in the hot path.
  virtual void synchronize(c10::Device device) const = 0;
  // timing: whether elapsed_ms() will be called. A thread that waits for an event without timing sleeps; with timing it
  // may keep a core busy.
  [[nodiscard]] virtual std::unique_ptr<Event> make_event(c10::Device device, bool timing) const = 0;
  // A handle to the device's stream for copies in parallel with the current stream. All handles share the stream and
  // its memory. Null for a CPU, where nothing is copied.
  [[nodiscard]] virtual std::unique_ptr<CopyStream> make_copy_stream(c10::Device device) const = 0;
  // core::divide_terms() and core::decide() for numbers on the device, one kernel each in its current stream. decide()
  // also sets the divisor.
  virtual void divide_terms(const core::LossWork& work, c10::Device device) const = 0;
  virtual void decide(const core::VerdictWork& work, c10::Device device) const = 0;
  [[nodiscard]] virtual DeviceFacts describe(c10::Device device) const = 0;
  // The PCI bus id, by which NVML finds a GPU (device/nvml.h): "0000:3B:00.0"; empty on a CPU.
  [[nodiscard]] virtual std::string bus_id(c10::Device device) const = 0;
};

// The backend for the kind of a device. DeviceError with the reason if there is none ("no CUDA: ...; device=cpu
// works").
[[nodiscard]] Backend& backend_for(c10::Device device);
// The same without an error: null if that kind is missing.
[[nodiscard]] Backend* find_backend(c10::DeviceType kind);

using AnyFunction = void (*)();  // of another type: the user casts it back

// Passed to libstoker_cuda when it is loaded, so that it registers with the executable and not with its own copy. The
// library either offers a backend or gives the reason why not.
class Registry {
 public:
  virtual ~Registry() = default;
  virtual void offer(c10::DeviceType kind, std::unique_ptr<Backend> backend) = 0;
  // A function for a room above this one, with a name chosen by that room ("resident.gather").
  virtual void offer_function(std::string name, AnyFunction function) = 0;
  virtual void refuse(c10::DeviceType kind, std::string reason) = 0;
};
[[nodiscard]] Registry& registry();
// The function of libstoker_cuda with that name; null: none.
[[nodiscard]] AnyFunction find_function(std::string_view name);
// The reason why the kind is missing; empty if it is available.
[[nodiscard]] std::string missing_reason(c10::DeviceType kind);

}  // namespace stoker::device
