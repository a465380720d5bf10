// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/feed_watch.h"

#include <algorithm>
#include <numeric>

namespace stoker::train {

void FeedWatch::start() {
  started_ = clock_();
  spent_ = {};  // a resumed run may have caught up on an evaluation
  begun_ = source_.figures().value_or(core::SourceFigures{});
  told_ = total(0);
}

core::Fed FeedWatch::total(std::int64_t step) const {
  const auto spent = [&](LoopWork work) { return spent_[static_cast<std::size_t>(work)]; };
  core::Fed all;
  all.step = step;
  all.seconds = elapsed();
  all.waited_seconds = spent(LoopWork::kWait);
  all.source = core::between(begun_, source_.figures().value_or(core::SourceFigures{}));
  const double others = std::accumulate(spent_.begin(), spent_.end(), 0.0);
  all.consumer = {{"step", std::max(all.seconds - others, 0.0)},
                  {"device wait", spent(LoopWork::kDevice)},
                  {"log", spent(LoopWork::kLog)},
                  {"checkpoint", spent(LoopWork::kCheckpoint)},
                  {"evaluation", spent(LoopWork::kEvaluation)}};
  return all;
}

void FeedWatch::tell(std::int64_t step) {
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
