// SPDX-License-Identifier: Apache-2.0
// Who holds GPU memory, shared memory and cores: the facts behind `stoker ps`. Used by the command line. Thread-safe:
// no state.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stoker/device/gpu_process.h"
#include "stoker/device/nvml.h"
#include "stoker/observe/monitor/process_list.h"

namespace stoker::study {

struct HeldGpu {
  int number = 0;
  std::string name;
  std::optional<double> memory_bytes, used_bytes, busy_share;  // missing if NVML does not tell
  bool mig = false;
};

struct Holder {
  int gpu = -1;             // -1: it holds no GPU
  std::int64_t bytes = -1;  // of GPU memory; -1: unknown
  int pid = 0;
  std::optional<observe::ListedProcess> process;  // none: not visible from here
  std::string remark;                             // "dead", "orphaned", "left over", ...; empty: nothing to say
};

struct SharedFile {
  std::string path;
  std::int64_t bytes = 0;
  std::vector<int> pids;   // that have it open, as far as they may be seen
  bool left_over = false;  // nobody has it open, and all processes could be seen
};

struct Holders {
  std::string no_gpu;  // why there are no GPUs; empty: there are
  std::vector<HeldGpu> gpus;
  std::vector<Holder> of_gpus;    // by GPU, then by memory
  std::vector<Holder> leftovers;  // workers without a parent, torch_shm_manager, other holders of nothing useful
  std::vector<SharedFile> shared;
  std::vector<Holder> runs;     // Stoker's trainings
  std::vector<Holder> busiest;  // of CPU time, at most five
  std::vector<std::string> pitfalls;
  std::optional<double> available_bytes, memory_bytes;  // of the machine
  int cores = 0;
  bool all_visible = false;  // the open files of every process could be listed
};

struct HoldersOptions {
  const device::Nvml* nvml = nullptr;
  std::filesystem::path root = "/";                        // prefix of /proc and /dev/shm
  std::vector<std::string> devices = device::gpu_files();  // that a holder of a GPU has open
};

[[nodiscard]] Holders find_holders(const HoldersOptions& options);
// Of this machine.
[[nodiscard]] Holders find_holders();

}  // namespace stoker::study
