// SPDX-License-Identifier: Apache-2.0
// Which processes have lost the program that started them: workers that nobody uses any more, and programs that hold a
// GPU for nobody. Used by `stoker ps`. Thread-safe: no state.
#pragma once

#include "stoker/observe/monitor/process_list.h"

namespace stoker::study {

// A helper process of PyTorch or of Python's multiprocessing.
[[nodiscard]] bool is_worker(const observe::ListedProcess& process);

// Whether the process was inherited: its parent is the first process or another one that collects orphans, such as
// systemd, tini or docker-init, and did not start it itself. Services and the container's own program are no orphans.
// parent: null if it is not visible.
[[nodiscard]] bool is_orphan(const observe::ListedProcess& process, const observe::ListedProcess* parent);

}  // namespace stoker::study
