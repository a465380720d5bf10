// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/page_heap.h"

#include <sys/mman.h>
#include <unistd.h>

#include <iterator>
#include <new>

namespace stoker::device {

std::size_t PageHeap::whole_pages(std::size_t bytes) {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

void* PageHeap::map(std::size_t bytes) noexcept {
  void* const block = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return block == MAP_FAILED ? nullptr : block;
}

void* PageHeap::reuse(std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const auto smallest = by_size_.lower_bound({bytes, nullptr});
  if (smallest == by_size_.end()) {
    return nullptr;
  }
  const auto [size, start] = *smallest;
  Nodes nodes = take_out(by_address_.find(start));
  if (size > bytes) {
    put_in(std::move(nodes), start + bytes, size - bytes);
  }
  return start;
}

void PageHeap::free(void* block, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  auto* start = static_cast<char*>(block);
  std::size_t size = bytes;
  Nodes nodes;
  const auto after = by_address_.lower_bound(start);
  if (after != by_address_.begin()) {
    if (const auto before = std::prev(after); before->first + before->second == start) {
      start = before->first;
      size += before->second;
      nodes = take_out(before);
    }
  }
  if (after != by_address_.end() && static_cast<char*>(block) + bytes == after->first) {
    size += after->second;
    nodes = take_out(after);
  }
  if (!nodes.by_address) {
    try {
      BySize sized{{size, start}};
      ByAddress placed{{start, size}};
      nodes = {placed.extract(placed.begin()), sized.extract(sized.begin())};
    } catch (const std::bad_alloc&) {
      ::munmap(block, bytes);
      return;
    }
  }
  put_in(std::move(nodes), start, size);
}

void PageHeap::release() noexcept {
  const std::lock_guard lock(mutex_);
  for (auto range = by_address_.begin(); range != by_address_.end();) {
    const auto each = range++;
    if (::munmap(each->first, each->second) == 0) {  // fails where a hole would need one mapping more than allowed
      (void)take_out(each);
    }
  }
}

PageHeap::Nodes PageHeap::take_out(ByAddress::iterator range) noexcept {
  free_bytes_ -= range->second;
  Nodes nodes{.by_address = {}, .by_size = by_size_.extract({range->second, range->first})};
  nodes.by_address = by_address_.extract(range);
  return nodes;
}

void PageHeap::put_in(Nodes nodes, char* start, std::size_t bytes) noexcept {
  nodes.by_address.key() = start;
  nodes.by_address.mapped() = bytes;
  nodes.by_size.value() = {bytes, start};
  by_address_.insert(std::move(nodes.by_address));
  by_size_.insert(std::move(nodes.by_size));
  free_bytes_ += bytes;
}

}  // namespace stoker::device
