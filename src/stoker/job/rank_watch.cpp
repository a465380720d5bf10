// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/rank_watch.h"

#include <algorithm>
#include <utility>

#include "stoker/base/clock.h"
#include "stoker/observe/straggler.h"
#include "stoker/parallel/member.h"

namespace stoker::job {

RankWatch::RankWatch(core::Communicator& ranks, const train::Step& step, core::EventEmitter& events)
    : tells_(ranks.rank() == 0),
      step_(step),
      events_(events),
      hosts_(core::texts_of_ranks(ranks, parallel::this_process().host)),
      begun_(step.rank_times()),
      told_(begun_) {}

core::RankTimes RankWatch::since(const core::RankTimes& from, std::int64_t step) const {
  core::RankTimes times = step_.rank_times();
  times.time = clock_s(CLOCK_REALTIME);
  times.step = step;
  times.steps -= from.steps;
  times.seconds -= from.seconds;
  times.exposed -= from.exposed;
  times.hosts = hosts_;
  for (std::size_t rank = 0; rank < from.ranks.size(); ++rank) {
    for (const auto time : {&core::RankTime::data, &core::RankTime::saving, &core::RankTime::delayed,
                            &core::RankTime::computed, &core::RankTime::waited}) {
      times.ranks[rank].*time -= std::max(from.ranks[rank].*time, 0.0);
    }
  }
  for (std::size_t i = 0; i < from.buckets.size(); ++i) {
    times.buckets[i].seconds -= from.buckets[i].seconds;
    times.buckets[i].steps -= from.buckets[i].steps;
  }
  return times;
}

void RankWatch::step_done(std::int64_t step, double seconds) {
  constexpr double kRanksEach = 16;  // a record has a line's length for as many: more ranks tell more rarely
  if (tells_ && seconds - told_at_ >= core::kFedEach * std::max(1.0, static_cast<double>(hosts_.size()) / kRanksEach)) {
    told_at_ = seconds;
    tell_period(step);
  }
}

void RankWatch::tell_period(std::int64_t step) {
  core::RankTimes period = since(told_, step);
  period.buckets.clear();  // in the record of all steps
  told_ = step_.rank_times();
  events_.emit(std::move(period));
}

void RankWatch::finish(std::int64_t step) {
  if (!tells_) {
    return;
  }
  tell_period(step);
  core::RankTimes whole = since(begun_, step);
  whole.whole = true;
  const observe::Straggler slowest = observe::find_straggler(whole);
  events_.emit(std::move(whole));
  if (slowest.rank >= 0) {
    events_.emit(core::Finding{slowest.words});
  }
}

}  // namespace stoker::job
