// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/rank_clock.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "stoker/base/clock.h"

namespace stoker::train {
namespace {

using core::Phase;

// What a rank tells, seconds since its message before; -1: unknown.
enum Field : std::int64_t {
  kSpan,          // without evaluations
  kData,          // of these it waited for batches
  kSaving,        // ... saved checkpoints
  kDelayed,       // ... was ready to run, without a core, while it did not wait for ranks
  kWaitedBefore,  // ... waited for ranks in other exchanges of the step,
  kWaitedAfter    // ... and in the one at its end
};
static_assert(kWaitedAfter + 1 == RankClock::kFields);

void add_known(double& sum, double value) {
  if (value >= 0) {
    sum = std::max(sum, 0.0) + value;
  }
}

}  // namespace

RankClock::RankClock(int ranks)
    : schedule_("/proc/thread-self/schedstat"),
      waited_before_(static_cast<std::size_t>(ranks)),
      waited_after_(static_cast<std::size_t>(ranks)) {
  sums_.ranks.resize(static_cast<std::size_t>(ranks));
  static_cast<void>(delayed());  // the file takes its memory here
}

double RankClock::now() { return core::t_book != nullptr ? core::t_book->now() : now_s(); }

RankClock::Reading RankClock::read_book() {
  const core::PhaseBook* const book = core::t_book;
  if (book == nullptr) {
    return {};
  }
  return {.data = book->seconds(Phase::kInput) + book->seconds(Phase::kCopy),
          .saving = book->seconds(Phase::kCheckpoint),
          .evaluating = book->seconds(Phase::kEvaluation),
          .exchanging = book->seconds(Phase::kExchange)};
}

// Since this thread began, in the queue for a core (proc(5), schedstat: the second number, ns). -1: unknown.
double RankClock::delayed() {
  const std::string_view text = schedule_.read();
  const std::size_t second = text.find(' ');
  const auto ns = second == text.npos ? std::nullopt : device::leading_number(text.substr(second + 1));
  return ns ? 1e-9 * static_cast<double>(*ns) : -1;
}

void RankClock::begin() { begun_ = now(); }

void RankClock::arrive(double* fields) {
  const double at = now(), late = delayed();
  const Reading book = read_book();
  const auto since = [&](double Reading::*time) { return std::max(book.*time - last_.*time, 0.0); };  // a new book: 0
  std::fill_n(fields, kFields, 0.0);
  if (arrived_ >= 0) {
    fields[kSpan] = std::max(at - arrived_ - since(&Reading::evaluating), 0.0);
    fields[kData] = core::t_book != nullptr ? since(&Reading::data) : -1;
    fields[kSaving] = core::t_book != nullptr ? since(&Reading::saving) : -1;
    fields[kDelayed] = late >= 0 && delayed_at_end_ >= 0 ? late - delayed_at_end_ : -1;
    fields[kWaitedBefore] = std::max(since(&Reading::exchanging) - in_exchange_, 0.0);
    fields[kWaitedAfter] = waited_;
  }
  last_ = book;
  arrived_ = at;
}

void RankClock::heard(int rank, const double* fields) {
  waited_before_[static_cast<std::size_t>(rank)] = fields[kWaitedBefore];
  waited_after_[static_cast<std::size_t>(rank)] = fields[kWaitedAfter];
  if (fields[kSpan] <= 0) {  // the first message
    return;
  }
  core::RankTime& sum = sums_.ranks[static_cast<std::size_t>(rank)];
  const double rest = std::max(fields[kSpan] - fields[kWaitedBefore] - fields[kWaitedAfter] -
                                   std::max(fields[kData], 0.0) - std::max(fields[kSaving], 0.0),
                               0.0);
  add_known(sum.data, fields[kData]);
  add_known(sum.saving, fields[kSaving]);
  add_known(sum.delayed, fields[kDelayed]);
  sum.computed += rest;
  span_ += fields[kSpan] / static_cast<double>(sums_.ranks.size());
}

// An exchange ends on all ranks together: the one that waited least came last, and waited for nobody.
void RankClock::heard_all() {
  const double before = std::ranges::min(waited_before_), after = std::ranges::min(waited_after_);
  for (std::size_t rank = 0; rank < sums_.ranks.size(); ++rank) {
    sums_.ranks[rank].waited += waited_before_[rank] - before + waited_after_[rank] - after;
  }
  sums_.exposed += before + after;
  sums_.seconds += span_;
  sums_.steps += span_ > 0 ? 1 : 0;
  span_ = 0;
}

void RankClock::end() {
  const double at = now();
  in_exchange_ = at - begun_;
  waited_ = at - arrived_;
  delayed_at_end_ = delayed();
}

}  // namespace stoker::train
