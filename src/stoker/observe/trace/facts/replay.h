// SPDX-License-Identifier: Apache-2.0
// What if the host had not waited for that: a recorded window is played again, with a kind of the host's time left out.
// The host works as long as it did between its launches; a call that waits ends after the work that it waited for; work
// begins after its launch and after the work before it on its stream, with the delay that was recorded. So what comes
// next as the limit shows: the host's launches, the device, or another wait. Thread-safe: no state.
//
// All threads of the host count as one, since in PyTorch one works while the others wait for it. Streams wait for each
// other as long as they did.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "stoker/observe/trace/facts/facts.h"

namespace stoker::observe::trace {

// Kinds of the host's time that a cure can take away as a whole.
inline constexpr std::array kReplayed = {Doing::kFetch, Doing::kSync, Doing::kAllocation, Doing::kCompiling,
                                         Doing::kSaving};

struct Replay {
  std::int64_t recorded = 0;  // ns from the begin of the window to the end of it, and of the work that it launched
  std::int64_t again = 0;     // the same of the replay with nothing left out; near to it, or the model does not fit
  std::array<std::int64_t, kDoings> without{};  // with all of a kind left out

  // again / recorded: 1 if the model fits; 0 without a device.
  [[nodiscard]] double length_share() const;
  // Of the time, what goes without that kind; none if the model is off by 3 % or more.
  [[nodiscard]] std::optional<double> saved(Doing doing) const;
};

// Of the first device.
[[nodiscard]] Replay replay(const TraceFacts& facts, Interval window);

}  // namespace stoker::observe::trace
