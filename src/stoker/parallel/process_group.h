// SPDX-License-Identifier: Apache-2.0
// The ranks of a run behind core::Communicator: c10d's Gloo group from the torch that we link, which carries the bytes,
// and a Lifeline beside it, which tells of ranks that fail. Made by job::join_ranks(); one thread at a time, but for
// start_sum(), which backward calls on torch's threads.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "stoker/core/communicator.h"
#include "stoker/parallel/place.h"

namespace stoker::parallel {

struct GroupOptions {
  std::chrono::milliseconds timeout = std::chrono::minutes(10);  // of a collective: then a rank counts as hung
  std::chrono::milliseconds start = std::chrono::minutes(5);     // until all ranks have met
  std::function<void()> while_waiting = {};                      // called while they have not; throws to give up
  std::function<void(const std::string&)> say = {};              // hears whom they wait for, on any thread
  std::chrono::milliseconds say_first = std::chrono::seconds(10), say_again = std::chrono::seconds(30);
};

// Meets the other ranks. SIGPIPE is ignored from then on, unless the program has a handler for it. ConfigError if they
// do not come in time, or cannot be reached. On one node it uses the loopback interface only; else the address that
// reaches the meeting point, or the interface GLOO_SOCKET_IFNAME.
[[nodiscard]] std::shared_ptr<core::Communicator> join(const Place& place, const GroupOptions& options = {});

}  // namespace stoker::parallel
