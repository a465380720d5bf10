// SPDX-License-Identifier: Apache-2.0
// Recycles memory for batches: memory that the last owner of a batch releases is used for a later batch. After a
// warm-up nothing is allocated and no page is touched for the first time. Used by ImageLoader. take() and release may
// happen on any thread; release also after the ring is destroyed.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace stoker::data {

class SlotRing {
 public:
  using Memory = std::shared_ptr<void>;
  using Allocate = std::function<Memory(std::size_t bytes)>;

  // Pageable memory, aligned to 64 bytes; std::bad_alloc.
  [[nodiscard]] static Memory pageable(std::size_t bytes);

  // bytes: size of a slot. keep: maximum number of unused slots; more are freed, so that a consumer that once held a
  // hundred batches does not keep their memory. allocate: for example for page-locked memory.
  SlotRing(std::size_t bytes, std::size_t keep, Allocate allocate = pageable);

  // An unused slot with undefined content. Never waits: allocates another slot if none is free. std::bad_alloc, or the
  // error of allocate.
  [[nodiscard]] std::shared_ptr<std::byte> take();
  // Number of slots allocated so far.
  [[nodiscard]] std::size_t allocated() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace stoker::data
