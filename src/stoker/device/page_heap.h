// SPDX-License-Identifier: Apache-2.0
// Blocks of whole pages for large CPU tensors. A freed block stays mapped, so that the next step takes it without page
// faults. All free blocks can be given back to the kernel at any moment; then the process holds what its tensors hold,
// as no small object lies between them. Used by HostAllocator. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace stoker::device {

class PageHeap {
 public:
  // The bytes of a block are a multiple of the page size: these bytes, rounded up.
  [[nodiscard]] static std::size_t whole_pages(std::size_t bytes);

  // A part of the smallest free range that is large enough, with arbitrary content; null if there is none.
  [[nodiscard]] void* reuse(std::size_t bytes) noexcept;
  // New from the kernel, all zeros; null if it has no more.
  [[nodiscard]] static void* map(std::size_t bytes) noexcept;
  // block: of reuse() or map(), called with these bytes. Joins it with free neighbours.
  void free(void* block, std::size_t bytes) noexcept;
  // Gives all free ranges back to the kernel.
  void release() noexcept;
  // Of all free ranges.
  [[nodiscard]] std::size_t free_bytes() const { return free_bytes_.load(std::memory_order_relaxed); }

 private:
  using ByAddress = std::map<char*, std::size_t>;
  using BySize = std::set<std::pair<std::size_t, char*>>;
  // The two nodes of a range outside of the containers. They are used again, so that most calls allocate nothing.
  struct Nodes {
    ByAddress::node_type by_address;
    BySize::node_type by_size;
  };
  Nodes take_out(ByAddress::iterator range) noexcept;
  void put_in(Nodes nodes, char* start, std::size_t bytes) noexcept;

  std::mutex mutex_;  // guards the two below, which hold the same free ranges
  ByAddress by_address_;
  BySize by_size_;
  std::atomic<std::size_t> free_bytes_ = 0;
};

}  // namespace stoker::device
