// SPDX-License-Identifier: Apache-2.0
// The part of a step that a thread is in, so that the memory it allocates and the time it spends are booked to it. Set
// by train::Step, the loop and the sources; read by device/host_allocator and core/phase_book.h. One value per thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stoker/core/phase_book.h"

namespace stoker::core {

// Of this thread.
inline thread_local Phase t_phase = Phase::kOther;

// The phase of this thread for a scope; then the one before. If the thread has a book, both changes are booked; what an
// evaluation or a checkpoint does inside stays booked to it.
class PhaseScope {
 public:
  explicit PhaseScope(Phase phase) : before_(t_phase), book_(t_book) {
    t_phase = phase;
    if (book_ != nullptr) {
      booked_before_ = book_->enter(phase);
    }
  }
  ~PhaseScope() {
    t_phase = before_;
    if (book_ != nullptr) {
      book_->turn(booked_before_);
    }
  }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  Phase before_, booked_before_ = Phase::kOther;
  PhaseBook* book_;
};

}  // namespace stoker::core
