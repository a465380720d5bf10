// SPDX-License-Identifier: Apache-2.0
// A named point on the memory time line of a step, for user code: memory::mark("after forward"). Costs one atomic read
// unless a step is being recorded (memory/step_recording.h). Thread-safe.
#pragma once

#include <string_view>

namespace stoker::memory {

void mark(std::string_view name);

}  // namespace stoker::memory
