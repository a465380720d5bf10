// SPDX-License-Identifier: Apache-2.0
// Looks at a running process of somebody else from outside: /proc, and py-spy where it is installed. Called by `stoker
// doctor --pid`. One thread.
#pragma once

#include "stoker/study/doctor/report.h"

namespace stoker::study {

// Watches it for `seconds`. The process is not stopped and not changed. ConfigError if there is no such process, or if
// it ends before anything was seen.
[[nodiscard]] Examined examine_process(int pid, double seconds);

}  // namespace stoker::study
