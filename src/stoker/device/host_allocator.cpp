// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/host_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <new>

#include "stoker/base/bytes_text.h"
#include "stoker/base/error.h"
#include "stoker/device/freed_memory.h"
#include "stoker/device/host_memory.h"
#include "stoker/device/page_heap.h"

namespace stoker::device {
namespace {

constexpr std::size_t kAlignment = 64;  // of the data, as torch's own allocator: a cache line, and AVX-512's width
constexpr std::uint8_t kPriority = 255;
constexpr std::int64_t kLeastCheck = 16 << 20;  // bytes between two looks at the system's memory
constexpr std::size_t kPaged = 256 << 10;  // blocks from this size on have pages of their own: at most a 64th is lost
constexpr std::size_t kLargest = std::size_t{1} << 62;  // bytes: the sums below cannot overflow

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
    for (std::size_t phase = 0; phase < core::kMemoryPhases; ++phase) {  // before it is used again
      const std::int64_t left = slot(next)[phase].exchange(0, std::memory_order_relaxed);
      older_[phase].fetch_add(left, std::memory_order_relaxed);
    }
    step_.store(next, std::memory_order_relaxed);
  }
  [[nodiscard]] BytesByAge read() const {
    BytesByAge result{};
    for (std::int64_t age = 0; age < kHostAges; ++age) {
      const Row& from = age == kHostAges - 1 ? older_ : rows_[index(step() - age)];
      for (std::size_t phase = 0; phase < core::kMemoryPhases; ++phase) {
        result[static_cast<std::size_t>(age)][phase] = from[phase].load(std::memory_order_relaxed);
      }
    }
    return result;
  }
  [[nodiscard]] BytesByPhase by_phase() const {
    BytesByPhase result{};
    for (std::size_t phase = 0; phase < core::kMemoryPhases; ++phase) {
      result[phase] = older_[phase].load(std::memory_order_relaxed);
      for (const Row& each : rows_) {
        result[phase] += each[phase].load(std::memory_order_relaxed);
      }
    }
    return result;
  }

 private:
  using Row = std::array<std::atomic<std::int64_t>, core::kMemoryPhases>;
  static constexpr std::int64_t kRows = kHostAges - 1;
  static std::size_t index(std::int64_t step) { return static_cast<std::size_t>((step % kRows + kRows) % kRows); }
  Row& slot(std::int64_t step) { return rows_[index(step)]; }
  Row& row(std::int64_t step) { return this->step() - step >= kRows ? older_ : slot(step); }

  std::atomic<std::int64_t> step_ = 0;
  std::array<Row, kRows> rows_{};
  Row older_{};
  std::mutex mutex_;
};

thread_local int t_beyond_caps = 0;  // scopes

class HostAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (AllocationListener* const told = listener.load(std::memory_order_acquire);
        told != nullptr && t_beyond_caps == 0) {
      told->before(bytes);
    }
    if (bytes == 0) {
      return {nullptr, nullptr, &release, c10::DeviceType::CPU};
    }
    if (bytes > kLargest) {
      refuse(std::numeric_limits<std::int64_t>::max(), allocated, ", and no system has more");
    }
    const auto size = static_cast<std::int64_t>(bytes);
    const std::int64_t total = allocated.fetch_add(size, std::memory_order_relaxed) + size;
    void* block = nullptr;
    try {
      block = take(bytes, total - size);
    } catch (...) {
      allocated.fetch_sub(size, std::memory_order_relaxed);
      throw;
    }
    if (bytes >= paged) {
      in_pages.fetch_add(size, std::memory_order_relaxed);
    }
    auto* const header = new (block) Header{bytes, ages.step(), core::memory_phase(core::t_phase)};
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

  // Bytes of tensors and of pages that are kept for the next ones.
  [[nodiscard]] std::int64_t reserved() const {
    return allocated.load(std::memory_order_relaxed) + static_cast<std::int64_t>(pages.free_bytes());
  }
  void release_free() {
    pages.release();
    ::malloc_trim(0);
    checked_ = 0;  // memory is short: the system is asked again
  }

  void raise_peak(std::int64_t total) {
    const std::lock_guard lock(peak_mutex);
    if (total > peak.load(std::memory_order_relaxed)) {
      peak.store(total, std::memory_order_relaxed);
      peak_phase = core::memory_phase(core::t_phase);
      peak_phases = ages.by_phase();
    }
  }

  std::atomic<AllocationListener*> listener = nullptr;
  std::atomic<std::int64_t> allocated = 0, cap = -1, peak = 0;
  std::mutex peak_mutex;  // guards the two below
  BytesByPhase peak_phases{};
  core::Phase peak_phase = core::Phase::kOther;
  Ages ages;
  PageHeap pages;
  std::atomic<std::int64_t> in_pages = 0;  // of `allocated`
  const std::size_t paged = keeps_freed_memory() ? kPaged : std::numeric_limits<std::size_t>::max();

 private:
  // A block with room for so many bytes, which `allocated` counts already. held: bytes of the other tensors. Throws
  // OutOfMemory.
  void* take(std::size_t bytes, std::int64_t held) {
    const auto size = static_cast<std::int64_t>(bytes);
    const std::int64_t most = t_beyond_caps > 0 ? -1 : cap.load(std::memory_order_relaxed);
    if (most >= 0 && held + size > most) {
      refuse(size, held, fmt::format(" of the {} that they may hold", bytes_text(most)));
    }
    void* block = bytes >= paged ? pages.reuse(block_bytes(bytes)) : nullptr;
    if (block != nullptr) {
      return block;
    }
    if (t_beyond_caps == 0 && reserved() > checked_.load(std::memory_order_relaxed)) {
      ask_system(size, held);
    }
    block = take_new(bytes);
    if (block == nullptr) {
      release_free();
      block = take_new(bytes);
    }
    if (block == nullptr) {
      refuse(size, held, ", and the system has no more");
    }
    return block;
  }

  // With the header.
  [[nodiscard]] std::size_t block_bytes(std::size_t bytes) const {
    return bytes >= paged ? PageHeap::whole_pages(bytes + kAlignment) : bytes + kAlignment;
  }
  [[nodiscard]] void* take_new(std::size_t bytes) const {
    if (bytes >= paged) {
      return PageHeap::map(block_bytes(bytes));
    }
    void* block = nullptr;
    return ::posix_memalign(&block, kAlignment, block_bytes(bytes)) == 0 ? block : nullptr;
  }

  // Above all that was held so far: gives back what is kept before it refuses, and allows a quarter of what the system
  // has left before it asks again.
  void ask_system(std::int64_t size, std::int64_t held) {
    HostMemory now = host_memory();
    const auto room = [&now] { return default_host_cap(now, 0); };
    if (room() >= 0 && room() < size) {
      release_free();
      now = host_memory();
    }
    if (room() >= 0 && room() < size) {
      refuse(size, held, fmt::format(", and {} leaves {} more", now.reason, bytes_text(room())));
    }
    checked_ =
        room() < 0 ? std::numeric_limits<std::int64_t>::max() : reserved() + std::max(kLeastCheck, (room() - size) / 4);
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
    if (header.bytes >= self.paged) {
      self.in_pages.fetch_sub(size, std::memory_order_relaxed);
      self.pages.free(block, self.block_bytes(header.bytes));
    } else {
      std::free(block);
    }
  }

  std::atomic<std::int64_t> checked_ = 0;  // may be reserved before the system is asked again
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

std::int64_t host_allocated_in_heap() { return host_allocated() - host().in_pages.load(std::memory_order_relaxed); }
std::int64_t host_reserved() { return host().reserved(); }
void release_host_memory() { host().release_free(); }

BeyondCaps::BeyondCaps() { ++t_beyond_caps; }
BeyondCaps::~BeyondCaps() { --t_beyond_caps; }

std::int64_t set_host_cap(std::int64_t bytes) { return host().cap.exchange(bytes); }
std::int64_t host_cap() { return host().cap.load(); }

void begin_host_step() { host().ages.next_step(); }
BytesByAge host_bytes_by_age() { return host().ages.read(); }

AllocationListener* listen_to_host_allocator(AllocationListener* listener) {
  return host().listener.exchange(listener);
}

}  // namespace stoker::device
