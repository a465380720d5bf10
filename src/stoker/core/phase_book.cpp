// SPDX-License-Identifier: Apache-2.0
#include "stoker/core/phase_book.h"

#include <algorithm>
#include <utility>

#include "stoker/base/clock.h"

namespace stoker::core {

PhaseBook::PhaseBook(std::function<double()> clock, std::function<double()> cpu_clock)
    : clock_(std::move(clock)), cpu_clock_(std::move(cpu_clock)) {
  marks_.reserve(kMostMarks);
}

void PhaseBook::open() {
  close();
  outer_ = std::exchange(t_book, this);
  is_open_ = true;
  current_ = Phase::kOther;
  spent_ = {};
  marks_.clear();
  cpu_known_ = false;
  opened_ = since_ = now();
}

void PhaseBook::close() {
  if (std::exchange(is_open_, false)) {
    settle();
    if (t_book == this) {
      t_book = outer_;
    }
  }
}

double PhaseBook::now() const { return clock_ ? clock_() : now_s(); }

double PhaseBook::settle() {
  const double at = now();
  spent_[index_of(current_)].seconds += at - since_;
  if (cpu_known_) {
    book_cpu(at);
  }
  since_ = at;
  return at;
}

// CPU time is booked from one reading to the next without a gap, or not at all.
void PhaseBook::book_cpu(double now) {
  const double cpu = cpu_clock_ ? cpu_clock_() : thread_cpu_s();
  if (cpu_known_) {
    PhaseSpent& spent = spent_[index_of(current_)];
    spent.probed += now - since_;
    spent.probed_cpu += cpu - cpu_since_;
  }
  cpu_since_ = cpu;
}

Phase PhaseBook::turn(Phase phase) {
  const Phase left = current_;
  if (phase == left) {
    return left;
  }
  const double at = now();
  spent_[index_of(left)].seconds += at - since_;
  if (probing_ || whole(left) || whole(phase)) {
    book_cpu(at);
    cpu_known_ = true;
  } else {
    cpu_known_ = false;
  }
  since_ = at;
  current_ = phase;
  if (listener_ != nullptr) {
    listener_->entered(phase);
  }
  return left;
}

std::size_t PhaseBook::mark(std::string_view name) {
  const auto found = std::ranges::find(marks_, name, &MarkSpent::name);
  if (found == marks_.end() && marks_.size() < kMostMarks) {
    marks_.push_back({std::string(name)});
    return marks_.size() - 1;
  }
  return found == marks_.end() ? kMostMarks : static_cast<std::size_t>(found - marks_.begin());
}

void PhaseBook::add_mark(std::size_t place, double seconds) {
  if (place < marks_.size()) {
    marks_[place].seconds += seconds;
    ++marks_[place].times;
  }
}

}  // namespace stoker::core
