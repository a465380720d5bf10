// SPDX-License-Identifier: Apache-2.0
// Ends one process that holds a GPU, and never another one: `stoker ps --free PID`. The process is described first; it
// is ended only if it still has the same start time, owner and open device file after the user agreed. One thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "stoker/device/gpu_process.h"
#include "stoker/observe/monitor/process_list.h"

namespace stoker::study {

struct FreeOptions {
  std::vector<std::string> devices = device::gpu_files();  // prefixes of device files
  double patience_seconds = 10;                            // between SIGTERM and SIGKILL
};

// agree: receives a description, and says whether to go on. True if the process has ended, false if agree refused.
// ConfigError: no such process, it holds no GPU, it belongs to somebody else, or it changed in the meantime. IoError:
// the kernel refuses, or it did not end.
bool free_gpu(int pid, const std::function<bool(const std::string& question)>& agree, const FreeOptions& options = {});

// Whether two looks at a pid show one process that holds a device both times. A number is used again when its process
// has ended.
[[nodiscard]] bool is_same_holder(const observe::ListedProcess& before, const observe::ListedProcess& now);

}  // namespace stoker::study
