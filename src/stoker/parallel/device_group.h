// SPDX-License-Identifier: Apache-2.0
// Collectives of tensors on GPUs: c10d's NCCL group of all ranks, made by libstoker_cuda when the first such tensor
// comes. They go on beside the host; if a rank is gone, they are cut off, so that no device waits for ever. Used by
// ProcessGroup, and watched by Lifeline. Every member may be called from any thread.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace c10d {
class Backend;
class Store;
class Work;
}  // namespace c10d

namespace stoker::parallel {

// The function of libstoker_cuda that makes the group. timeout: of a collective; then torch cuts off all of them.
using DeviceGroupMaker = c10::intrusive_ptr<c10d::Backend>(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                           int ranks, std::chrono::milliseconds timeout);
inline constexpr const char* kNccl = "parallel.nccl";

// Why ranks cannot train on GPUs here; empty: they can.
[[nodiscard]] std::string why_no_device_group();

class DeviceGroup {
 public:
  // store: of all ranks. make: makes the group; null: that of libstoker_cuda.
  DeviceGroup(c10::intrusive_ptr<c10d::Store> store, int rank, int ranks, std::chrono::milliseconds timeout,
              DeviceGroupMaker* make = nullptr);
  // end().
  ~DeviceGroup();
  DeviceGroup(const DeviceGroup&) = delete;
  DeviceGroup& operator=(const DeviceGroup&) = delete;

  // Starts a collective; its Work's wait() makes the current stream wait, not the host. ConfigError without NCCL.
  using Start = std::function<c10::intrusive_ptr<c10d::Work>(c10d::Backend&)>;
  [[nodiscard]] c10::intrusive_ptr<c10d::Work> start(const Start& begin);
  // Whether a collective that was started is not done.
  [[nodiscard]] bool busy() const;
  // Ends the group; after a failure without the other ranks. Nothing may be started afterwards.
  void end() noexcept;
  // Ends all that runs, with any result.
  void cut_off() noexcept;
  // Returns when all that was started is done. RankError if it was cut off, or is not done after so long.
  void settle(std::optional<std::chrono::milliseconds> longest = {}) const;

 private:
  [[nodiscard]] c10::intrusive_ptr<c10d::Backend> group() const;

  const c10::intrusive_ptr<c10d::Store> store_;
  const int rank_, ranks_;
  const std::chrono::milliseconds timeout_;
  DeviceGroupMaker* const make_;
  mutable std::mutex mutex_;
  c10::intrusive_ptr<c10d::Backend> group_;  // null: nobody needed it yet
  c10::intrusive_ptr<c10d::Work> newest_;    // its stream takes one after the other
  std::atomic<bool> cut_off_ = false;
};

}  // namespace stoker::parallel
