// SPDX-License-Identifier: Apache-2.0
// The figures of an ImageLoader, and the tuning of its threads by them.
#include <algorithm>
#include <new>

#include "stoker/data/load/image_loader.h"

namespace stoker::data {

void ImageLoader::watch_for_pauses() {
  constexpr double kPause = 0.3, kUnusual = 10;  // seconds; multiple of the consumer's usual time per batch
  const double gap = since_.seconds() - left_at_;
  if (gap > std::max(kPause, kUnusual * usual_gap_)) {
    governor_->consumer_was_away(counted());
  }
  usual_gap_ += 0.1 * (gap - usual_gap_);
}

// Without memory the threads are tuned later.

void ImageLoader::govern() {
  try {
    if (governor_->due(since_.seconds())) {
      const int threads = governor_->look(counted());
      if (threads != pool_.threads()) {
        pool_.set_threads(threads);
      }
    }
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
  }
  left_at_ = since_.seconds();
}

core::SourceFigures ImageLoader::counted(std::int64_t* slowest) const {
  std::vector<const StageLaps*> laps;
  for (const SampleWorkspace& workspace : workspaces_) {
    laps.push_back(&workspace.laps);
  }
  std::int64_t sample = -1;
  core::SourceFigures figures = sum(laps, sample);
  figures.wall_seconds = since_.seconds();
  figures.wait_seconds = pool_.wait_seconds();
  figures.threads = pool_.threads();
  figures.cores = options_.cores;
  if (slowest != nullptr) {
    *slowest = sample;
  }
  return figures;
}

std::optional<core::SourceFigures> ImageLoader::figures() const {
  std::int64_t slowest = -1;
  core::SourceFigures figures = counted(&slowest);
  figures.slowest = slowest < 0 ? "" : reader_.name(slowest);
  return figures;
}

}  // namespace stoker::data
