// SPDX-License-Identifier: Apache-2.0
// The progress line as an event sink, for programs that run a Job on a terminal. Thread-safe: no state.
#pragma once

#include <memory>

#include "stoker/core/events.h"

namespace stoker::job {

// On standard output: drawn on a terminal, plain lines in a file, little output if quiet, one object per event if json.
[[nodiscard]] std::unique_ptr<core::EventSink> progress_sink(bool quiet, bool json);

}  // namespace stoker::job
