// SPDX-License-Identifier: Apache-2.0
// What `stoker top` shows: the machine, its GPUs, its processes and the trainings on it, with their history. Each look
// compares with the last one. Used by the command line. One thread.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stoker/device/nvml.h"
#include "stoker/observe/monitor/gpu_watch.h"
#include "stoker/observe/monitor/machine_reader.h"
#include "stoker/observe/monitor/process_list.h"
#include "stoker/study/top/run_tail.h"

namespace stoker::study {

using FigureValues = std::map<std::string, double>;  // by name

struct WatchedProcess {
  observe::ListedProcess process;
  std::optional<double> cores;      // in use since the last look; missing in the first one
  std::optional<double> gpu_bytes;  // held on all GPUs; missing if none, or if the driver does not tell
};

struct WatchedGpu {
  device::GpuFacts facts;
  FigureValues figures;  // "gpu0.busy_share"
  History busy;
};

struct Watched {
  int cores = 0;  // that this process may use
  std::optional<double> memory_bytes, available_bytes;
  FigureValues machine;
  History busy_cores, memory;  // memory: share in use
  std::string no_gpu;          // why there are no GPUs
  std::vector<WatchedGpu> gpus;
  std::vector<WatchedProcess> processes;               // the busiest first
  std::vector<std::pair<std::string, RunState>> runs;  // by folder
};

struct WatchOptions {
  const device::Nvml* nvml = nullptr;
  std::filesystem::path root = "/";
  std::vector<std::filesystem::path> runs = {};  // folders to show besides the trainings that are found
};

class MachineView {
 public:
  explicit MachineView(const WatchOptions& options);
  // Of this machine, with these run folders.
  explicit MachineView(std::vector<std::filesystem::path> runs);
  // seconds: since the last look, or since it was made.
  const Watched& look(double seconds);

 private:
  void look_at_processes(double seconds);
  [[nodiscard]] std::map<int, double> gpu_memory() const;
  void look_at_runs();

  WatchOptions options_;
  observe::MachineWatch machine_;
  std::vector<std::unique_ptr<observe::GpuWatch>> gpus_;
  std::map<int, observe::ProcessTimes> before_;
  std::map<std::string, RunTail> tails_;
  Watched seen_;
};

}  // namespace stoker::study
