// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/skip_watch.h"

#include <algorithm>
#include <optional>
#include <string>

#include "stoker/base/error.h"
#include "stoker/core/phase.h"

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
    const auto read = [&] {
      std::optional<core::PhaseScope> wait;
      if (lag_ > 0) {  // else the step is done: a CPU's
        wait.emplace(core::Phase::kDeviceWait);
      }
      return oldest.scalars->read();
    };
    check(oldest, read());
  }
}

void SkipWatch::check(const Seen& seen, const core::Scalars& scalars) {
  const auto skipped = static_cast<std::int64_t>(scalars.values[column_]);
  parts_.progress.loss = scalars.values[0];
  last_fault_.clear();
  if (skipped == 0) {
    return;
  }
  parts_.events.emit(core::FaultSurvived{
      seen.step, "non_finite", fmt::format("skipped: the loss or gradients are not finite ({} in a row)", skipped)});
  last_fault_ = fmt::format("{} not finite; the last batch of {} began with {}",
                            skipped == 1 ? "the last step was" : fmt::format("{} steps in a row were", skipped),
                            seen.samples.size(), first_names(seen.samples));
  if (skipped > limit_) {
    fail<Error>("train.loop", "{}; {} these samples", last_fault_, kFiniteRemedy);
  }
}

std::string SkipWatch::first_names(const std::vector<std::int64_t>& samples) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min<std::size_t>(samples.size(), 8); ++i) {
    names.push_back(parts_.owner.sample_name(samples[i]));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace stoker::train
