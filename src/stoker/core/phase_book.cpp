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
    book_cpu();
  }
  since_ = at;
  return at;
}

// The CPU time of a visit is read at its begin and its end, or not at all.
void PhaseBook::book_cpu() {
  const double cpu = cpu_clock_ ? cpu_clock_() : thread_cpu_s();
  if (cpu_known_) {
    spent_[index_of(current_)].probed_cpu += cpu - cpu_since_;
  }
  cpu_since_ = cpu;
}

Phase PhaseBook::turn(Phase phase) {
  const Phase left = current_;
  if (phase == left) {
    return left;
  }
  const double at = now();
  PhaseSpent& spent = spent_[index_of(left)];
  spent.seconds += at - since_;
  ++spent.visits;
  spent.probed_visits += cpu_known_ ? 1 : 0;
  const bool read = probing_ || whole(phase);
  if (cpu_known_ || read) {
    book_cpu();
  }
  cpu_known_ = read;
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
