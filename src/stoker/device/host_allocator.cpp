// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/host_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <new>

#include "stoker/base/bytes_text.h"
#include "stoker/base/error.h"
#include "stoker/device/host_memory.h"

namespace stoker::device {
namespace {

constexpr std::size_t kAlignment = 64;  // of the data, as torch's own allocator: a cache line, and AVX-512's width
constexpr std::uint8_t kPriority = 255;
constexpr std::int64_t kLeastCheck = 16 << 20;  // bytes between two looks at the system's memory

// In front of the data of each block, in one alignment unit.
struct Header {
  std::size_t bytes;
  std::int64_t step;
  core::Phase phase;
};
static_assert(sizeof(Header) <= kAlignment);

// Bytes alive by step of allocation and phase. The slot of a step is used again kHostAges steps later; what still lives
// then moves to the last row. Sums are exact; while a step begins, a block that is freed may be booked one row off.
class Ages {
 public:
  void add(std::int64_t step, core::Phase phase, std::int64_t bytes) {
    row(step)[static_cast<std::size_t>(phase)].fetch_add(bytes, std::memory_order_relaxed);
  }
  std::int64_t step() const { return step_.load(std::memory_order_relaxed); }
  void next_step() {
    const std::lock_guard lock(mutex_);
    const std::int64_t next = step() + 1;
    for (std::size_t phase = 0; phase < core::kPhases; ++phase) {  // before it is used again
      const std::int64_t left = slot(next)[phase].exchange(0, std::memory_order_relaxed);
      older_[phase].fetch_add(left, std::memory_order_relaxed);
    }
    step_.store(next, std::memory_order_relaxed);
  }
  [[nodiscard]] BytesByAge read() const {
    BytesByAge result{};
    for (std::int64_t age = 0; age < kHostAges; ++age) {
      const Row& from = age == kHostAges - 1 ? older_ : rows_[index(step() - age)];
      for (std::size_t phase = 0; phase < core::kPhases; ++phase) {
        result[static_cast<std::size_t>(age)][phase] = from[phase].load(std::memory_order_relaxed);
      }
    }
    return result;
  }
  [[nodiscard]] BytesByPhase by_phase() const {
    BytesByPhase result{};
    for (std::size_t phase = 0; phase < core::kPhases; ++phase) {
      result[phase] = older_[phase].load(std::memory_order_relaxed);
      for (const Row& each : rows_) {
        result[phase] += each[phase].load(std::memory_order_relaxed);
      }
    }
    return result;
  }

 private:
  using Row = std::array<std::atomic<std::int64_t>, core::kPhases>;
  static constexpr std::int64_t kRows = kHostAges - 1;
  static std::size_t index(std::int64_t step) { return static_cast<std::size_t>((step % kRows + kRows) % kRows); }
  Row& slot(std::int64_t step) { return rows_[index(step)]; }
  Row& row(std::int64_t step) { return this->step() - step >= kRows ? older_ : slot(step); }

  std::atomic<std::int64_t> step_ = 0;
  std::array<Row, kRows> rows_{};
  Row older_{};
  std::mutex mutex_;
};

class HostAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (AllocationListener* const told = listener.load(std::memory_order_acquire)) {
      told->before(bytes);
    }
    if (bytes == 0) {
      return {nullptr, nullptr, &release, c10::DeviceType::CPU};
    }
    const auto size = static_cast<std::int64_t>(bytes);
    const std::int64_t total = reserve(size);
    void* block = nullptr;
    if (bytes > SIZE_MAX - kAlignment || ::posix_memalign(&block, kAlignment, bytes + kAlignment) != 0) {
      allocated.fetch_sub(size, std::memory_order_relaxed);
      refuse(size, total - size, ", and the system has no more");
    }
    auto* const header = new (block) Header{bytes, ages.step(), core::t_phase};
    ages.add(header->step, header->phase, size);
    if (total > peak.load(std::memory_order_relaxed)) {
      raise_peak(total);
    }
    void* const data = static_cast<char*>(block) + kAlignment;
    if (AllocationListener* const told = listener.load(std::memory_order_acquire)) {
      told->made(data, bytes);
    }
    if (c10::memoryProfilingEnabled()) {
      report(data, size);
    }
    return {data, data, &release, c10::DeviceType::CPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

  // Never destroyed: tensors of static lifetime may still be freed at exit.
  static HostAllocator& instance() {
    static auto* const allocator = new HostAllocator;
    return *allocator;
  }

  void raise_peak(std::int64_t total) {
    const std::lock_guard lock(peak_mutex);
    if (total > peak.load(std::memory_order_relaxed)) {
      peak.store(total, std::memory_order_relaxed);
      peak_phase = core::t_phase;
      peak_phases = ages.by_phase();
    }
  }

  std::atomic<AllocationListener*> listener = nullptr;
  std::atomic<std::int64_t> allocated = 0, cap = -1, peak = 0;
  std::mutex peak_mutex;  // guards the two below
  BytesByPhase peak_phases{};
  core::Phase peak_phase = core::Phase::kOther;
  Ages ages;

 private:
  std::atomic<std::int64_t> checked_ = 0;  // tensors may hold this much before the system is asked again

  // Books the bytes, or throws; returns the total with them.
  std::int64_t reserve(std::int64_t size) {
    const std::int64_t total = allocated.fetch_add(size, std::memory_order_relaxed) + size;
    const std::int64_t most = cap.load(std::memory_order_relaxed);
    if (most >= 0 ? total > most : total > checked_.load(std::memory_order_relaxed)) {
      try {
        if (most >= 0) {
          refuse(size, total - size, fmt::format(" of the {} that they may hold", bytes_text(most)));
        }
        check_host(size, total);
      } catch (...) {
        allocated.fetch_sub(size, std::memory_order_relaxed);
        throw;
      }
    }
    return total;
  }

  // Above all that was held so far: asks the system, and allows a quarter of what it has left before it asks again.
  void check_host(std::int64_t size, std::int64_t total) {
    const HostMemory now = host_memory();
    const std::int64_t most = default_host_cap(now, total - size);
    if (most >= 0 && total > most) {
      refuse(size, total - size,
             fmt::format(", and {} leaves {} more", now.reason,
                         bytes_text(std::max<std::int64_t>(0, most - (total - size)))));
    }
    checked_ = most < 0 ? std::numeric_limits<std::int64_t>::max() : total + std::max(kLeastCheck, (most - total) / 4);
  }

  [[noreturn]] void refuse(std::int64_t size, std::int64_t held, std::string_view why) {
    c10::reportOutOfMemoryToProfiler(size, static_cast<std::size_t>(held), 0, c10::Device(c10::DeviceType::CPU));
    fail<OutOfMemory>("memory", "no memory for a tensor of {} in phase \"{}\": tensors hold {}{}", bytes_text(size),
                      core::phase_name(core::t_phase), bytes_text(held), why);
  }

  void report(void* data, std::int64_t change) {
    c10::reportMemoryUsageToProfiler(data, change, static_cast<std::size_t>(allocated.load(std::memory_order_relaxed)),
                                     0, c10::Device(c10::DeviceType::CPU));
  }

  static void release(void* data) {
    if (data == nullptr) {
      return;
    }
    HostAllocator& self = instance();
    void* const block = static_cast<char*>(data) - kAlignment;
    const Header header = *static_cast<const Header*>(block);
    const auto size = static_cast<std::int64_t>(header.bytes);
    if (AllocationListener* const told = self.listener.load(std::memory_order_acquire)) {
      told->freed(data, header.bytes);
    }
    self.allocated.fetch_sub(size, std::memory_order_relaxed);
    self.ages.add(header.step, header.phase, -size);
    if (c10::memoryProfilingEnabled()) {
      self.report(data, -size);
    }
    std::free(block);
  }
};

HostAllocator& host() { return HostAllocator::instance(); }

}  // namespace

void install_host_allocator() {
  if (!host_allocator_installed()) {
    c10::SetCPUAllocator(&host(), kPriority);
  }
}

bool host_allocator_installed() { return c10::GetCPUAllocator() == &host(); }

HostTensors host_tensors() {
  HostAllocator& self = host();
  HostTensors result;
  result.allocated = host_allocated();
  result.by_phase = self.ages.by_phase();
  const std::lock_guard lock(self.peak_mutex);
  result.peak = self.peak.load(std::memory_order_relaxed);
  result.peak_phases = self.peak_phases;
  result.peak_phase = self.peak_phase;
  return result;
}

std::int64_t host_allocated() { return host().allocated.load(std::memory_order_relaxed); }

void reset_host_peak() {
  HostAllocator& self = host();
  self.peak.store(-1, std::memory_order_relaxed);
  self.raise_peak(host_allocated());
}

std::int64_t set_host_cap(std::int64_t bytes) { return host().cap.exchange(bytes); }
std::int64_t host_cap() { return host().cap.load(); }

void begin_host_step() { host().ages.next_step(); }
BytesByAge host_bytes_by_age() { return host().ages.read(); }

AllocationListener* listen_to_host_allocator(AllocationListener* listener) {
  return host().listener.exchange(listener);
}

}  // namespace stoker::device
