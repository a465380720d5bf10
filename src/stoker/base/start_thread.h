// SPDX-License-Identifier: Apache-2.0
// Starts a thread, or throws an error that says which thread the system refused and which limits to look at:
// std::system_error only says "Resource temporarily unavailable". Used wherever Stoker starts a thread. Thread-safe.
#pragma once

#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "stoker/base/error.h"

namespace stoker {

// where: as in Error. duty: what the thread does, for the message: "copies batches". ConfigError if the system starts
// no more threads, since the limits are set outside of this process; std::bad_alloc without memory.
template <typename Work>
[[nodiscard]] std::jthread start_thread(std::string_view where, std::string_view duty, Work&& work) {
  try {
    return std::jthread(std::forward<Work>(work));
  } catch (const std::system_error& error) {
    fail<ConfigError>(where,
                      "the system cannot start the thread that {}: {}; look at the limits on processes (ulimit -u, "
                      "pids.max of the cgroup) and on memory (ulimit -v, free memory)",
                      duty, error.code().message());
  }
}

}  // namespace stoker
