// SPDX-License-Identifier: Apache-2.0
// Starts a thread, or throws an error that says which thread the system refused and which limits to look at:
// std::system_error only says "Resource temporarily unavailable". Used wherever Stoker starts a thread. Thread-safe.
#pragma once

#include <pthread.h>

#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "stoker/base/error.h"

namespace stoker {

// Names a thread for debuggers, `top` and the monitor (observe/monitor): at most 15 characters are kept.
inline void name_thread(std::string_view name, pthread_t thread = ::pthread_self()) {
  ::pthread_setname_np(thread, std::string(name.substr(0, 15)).c_str());
}

// where: as in Error; its last part names the thread. duty: what the thread does, for the message: "copies batches".
// ConfigError if the system starts no more threads, since the limits are set outside of this process; std::bad_alloc
// without memory.
template <typename Work>
[[nodiscard]] std::jthread start_thread(std::string_view where, std::string_view duty, Work&& work) {
  try {
    std::jthread thread(std::forward<Work>(work));
    name_thread(where.substr(where.rfind('.') + 1), thread.native_handle());
    return thread;
  } catch (const std::system_error& error) {
    fail<ConfigError>(where,
                      "the system cannot start the thread that {}: {}; look at the limits on processes (ulimit -u, "
                      "pids.max of the cgroup) and on memory (ulimit -v, free memory)",
                      duty, error.code().message());
  }
}

}  // namespace stoker
