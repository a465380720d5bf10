// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/load/slot_ring.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace stoker::data {

struct SlotRing::State {
  std::size_t bytes, keep;
  Allocate allocate;
  std::mutex mutex;  // guards the members below
  std::vector<Memory> free;
  std::size_t allocated = 0;
};

SlotRing::Memory SlotRing::pageable(std::size_t bytes) {
  constexpr std::size_t kLine = 64, kHugePage = std::size_t{2} << 20;
  const std::size_t align = bytes >= kHugePage ? kHugePage : kLine;
  const std::size_t size = (std::max<std::size_t>(bytes, 1) + kLine - 1) / kLine * kLine;
  Memory memory(std::aligned_alloc(align, (size + align - 1) / align * align), std::free);
  if (!memory) {
    throw std::bad_alloc();
  }
  if (align == kHugePage) {
    madvise(memory.get(), size, MADV_HUGEPAGE);  // a hint
  }
  return memory;
}

SlotRing::SlotRing(std::size_t bytes, std::size_t keep, Allocate allocate) : state_(std::make_shared<State>()) {
  state_->bytes = bytes;
  state_->keep = keep;
  state_->allocate = std::move(allocate);
  state_->free.reserve(keep);
}

std::shared_ptr<std::byte> SlotRing::take() {
  Memory memory;
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->free.empty()) {
      memory = std::move(state_->free.back());
      state_->free.pop_back();
    }
  }
  if (!memory) {
    memory = state_->allocate(state_->bytes);
    const std::lock_guard lock(state_->mutex);
    ++state_->allocated;
  }
  auto* bytes = static_cast<std::byte*>(memory.get());
  // Without memory for the counter of owners, shared_ptr calls the deleter: the slot is free again.
  return {bytes, [state = state_, memory](std::byte*) mutable {
            const std::lock_guard lock(state->mutex);
            if (state->free.size() < state->keep) {
              state->free.push_back(std::move(memory));
            }
          }};
}

std::size_t SlotRing::allocated() const {
  const std::lock_guard lock(state_->mutex);
  return state_->allocated;
}

}  // namespace stoker::data
