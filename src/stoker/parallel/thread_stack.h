// SPDX-License-Identifier: Apache-2.0
// Where a thread of this process is, for one that hangs: asked for by another thread, by a signal (SIGRTMIN + 6).
// Thread-safe.
#pragma once

#include <pthread.h>

#include <string>

namespace stoker::parallel {

// A line per function call, the innermost first; "" if the thread does not take signals within a second. Functions that
// a program does not export have addresses instead of names.
[[nodiscard]] std::string stack_of(pthread_t thread);

}  // namespace stoker::parallel
