// SPDX-License-Identifier: Apache-2.0
// Memory for batches that goes round: what the last owner of a batch lets go is taken for a later one, so that nothing
// is allocated (and no page touched for the first time) once as many are under way as ever will be. Used by
// ImageLoader. take() and letting go may happen on any threads, the latter also after the ring is gone.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace stoker::data {

class SlotRing {
 public:
  using Memory = std::shared_ptr<void>;
  using Allocate = std::function<Memory(std::size_t bytes)>;

  // Memory that the system may page, aligned to 64 bytes; std::bad_alloc.
  [[nodiscard]] static Memory pageable(std::size_t bytes);

  // bytes: of a slot. keep: how many are kept while nobody has them; more are freed, so that a consumer that once held
  // on to a hundred batches does not keep their memory. allocate: page-locked memory comes from whoever knows how.
  SlotRing(std::size_t bytes, std::size_t keep, Allocate allocate = pageable);

  // A slot that nobody has, of undefined content: never waits, a slot more is allocated where none came back yet.
  [[nodiscard]] std::shared_ptr<std::byte> take();
  // How many were allocated so far.
  [[nodiscard]] std::size_t allocated() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace stoker::data
