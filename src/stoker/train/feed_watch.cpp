// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/feed_watch.h"

#include <algorithm>

namespace stoker::train {

using core::Phase;

void FeedWatch::start() {
  begun_ = source_.figures().value_or(core::SourceFigures{});
  book_.open();
  told_ = total(0);
}

core::Fed FeedWatch::total(std::int64_t step) const {
  core::Fed all;
  all.step = step;
  all.seconds = book_.total();
  all.waited_seconds = waited();
  all.source = core::between(begun_, source_.figures().value_or(core::SourceFigures{}));
  double others = all.waited_seconds;
  for (const auto& [name, phase] :
       {std::pair("device wait", Phase::kDeviceWait), std::pair("log", Phase::kLogging),
        std::pair("checkpoint", Phase::kCheckpoint), std::pair("evaluation", Phase::kEvaluation)}) {
    all.consumer.push_back({name, book_.seconds(phase)});
    others += book_.seconds(phase);
  }
  all.consumer.insert(all.consumer.begin(), {"step", std::max(all.seconds - others, 0.0)});
  return all;
}

void FeedWatch::step_done(std::int64_t step) {
  book_.settle();
  if (book_.total() - told_.seconds < core::kFedEach) {
    return;
  }
  core::Fed now = total(step);
  core::Fed window = now;
  window.seconds -= told_.seconds;
  window.waited_seconds -= told_.waited_seconds;
  window.source = core::between(told_.source, window.source);
  for (std::size_t i = 0; i < window.consumer.size(); ++i) {
    window.consumer[i].seconds = std::max(window.consumer[i].seconds - told_.consumer[i].seconds, 0.0);
  }
  told_ = std::move(now);
  events_.emit(std::move(window));
}

}  // namespace stoker::train
