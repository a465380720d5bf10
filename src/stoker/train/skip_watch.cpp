// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/skip_watch.h"

#include <algorithm>
#include <string>

#include "stoker/base/error.h"

namespace stoker::train {

SkipWatch::SkipWatch(const LoopParts& parts, std::int64_t limit, std::size_t lag)
    : parts_(parts), limit_(limit), lag_(lag) {
  const auto& names = parts.step.scalar_names();
  column_ = static_cast<std::size_t>(std::ranges::find(names, "skipped") - names.begin());
}

void SkipWatch::watch(std::int64_t step, std::shared_ptr<const core::PendingScalars> scalars,
                      std::vector<std::int64_t> samples) {
  seen_.push_back({step, std::move(scalars), std::move(samples)});
  check_down_to(lag_);
}

void SkipWatch::check_down_to(std::size_t left) {
  while (seen_.size() > left) {
    const Seen oldest = std::move(seen_.front());
    seen_.pop_front();
    check(oldest);
  }
}

void SkipWatch::check(const Seen& seen) const {
  const auto skipped = static_cast<std::int64_t>(seen.scalars->read().values[column_]);
  if (skipped == 0) {
    return;
  }
  parts_.events.emit(core::FaultSurvived{
      seen.step, "non_finite", fmt::format("skipped: its loss or gradients are not finite ({} in a row)", skipped)});
  if (skipped > limit_) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::min<std::size_t>(seen.samples.size(), 8); ++i) {
      names.push_back(parts_.sample_name(seen.samples[i]));
    }
    fail<Error>("train.loop",
                "{} steps in a row were not finite; the last batch of {} began with {}; lower lr, set clip=1 "
                "or precision=fp32, or look at these samples",
                skipped, seen.samples.size(), fmt::join(names, ", "));
  }
}

}  // namespace stoker::train
