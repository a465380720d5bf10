// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/top/watch.h"

#include <algorithm>
#include <set>

#include "stoker/device/cpu_quota.h"
#include "stoker/device/gpu_process.h"
#include "stoker/device/process_facts.h"

namespace stoker::study {
namespace {

FigureValues values(observe::Figures& figures) {
  FigureValues result;
  for (core::Figure& figure : figures.take()) {
    result.emplace(std::move(figure.name), figure.value);
  }
  return result;
}

std::optional<double> cpu_seconds(const observe::ProcessTimes& times) {
  return times.user_seconds && times.system_seconds ? std::optional(*times.user_seconds + *times.system_seconds)
                                                    : std::nullopt;
}

}  // namespace

MachineView::MachineView(const WatchOptions& options) : options_(options), machine_(options.root) {
  seen_.no_gpu = options.nvml == nullptr ? "no NVIDIA driver was found" : options.nvml->missing();
  const int count = options.nvml == nullptr ? 0 : options.nvml->count();
  for (int gpu = 0; gpu < count; ++gpu) {
    gpus_.push_back(std::make_unique<observe::GpuWatch>(*options.nvml, gpu, "gpu" + std::to_string(gpu)));
    seen_.gpus.push_back({gpus_.back()->facts(), {}, {}});
  }
  for (const observe::ListedProcess& process : observe::list_processes({}, options.root)) {
    before_.emplace(process.pid, process.times);
  }
}

MachineView::MachineView(std::vector<std::filesystem::path> runs)
    : MachineView(WatchOptions{.nvml = &device::machine_nvml(), .root = "/", .runs = std::move(runs)}) {}

// Bytes by pid, of the processes that are visible from here.
std::map<int, double> MachineView::gpu_memory() const {
  std::map<int, double> held;
  for (int gpu = 0; gpu < static_cast<int>(gpus_.size()); ++gpu) {
    for (const device::GpuHolder& holder : options_.nvml->holders(gpu)) {
      const auto pid = device::local_pid(holder.pid, device::gpu_files(), options_.root);
      if (holder.bytes >= 0 && pid) {
        held[*pid] += static_cast<double>(holder.bytes);
      }
    }
  }
  return held;
}

void MachineView::look_at_processes(double seconds) {
  const std::map<int, double> held = gpu_memory();
  std::map<int, observe::ProcessTimes> now;
  seen_.processes.clear();
  for (observe::ListedProcess& process : observe::list_processes({}, options_.root)) {
    const auto found = before_.find(process.pid);
    const bool same = found != before_.end() && found->second.start_seconds == process.times.start_seconds;
    const auto cores =
        observe::rate(same ? cpu_seconds(found->second) : std::optional(0.0), cpu_seconds(process.times), seconds);
    now.emplace(process.pid, process.times);
    if (process.times.resident_bytes.value_or(0) > 0) {  // not a kernel thread
      const auto gpu = held.find(process.pid);
      seen_.processes.push_back({std::move(process), same ? cores : std::nullopt,
                                 gpu == held.end() ? std::nullopt : std::optional(gpu->second)});
    }
  }
  before_ = std::move(now);
  std::ranges::stable_sort(seen_.processes, [](const WatchedProcess& a, const WatchedProcess& b) {
    return std::pair(a.cores.value_or(0), a.process.times.resident_bytes.value_or(0)) >
           std::pair(b.cores.value_or(0), b.process.times.resident_bytes.value_or(0));
  });
}

// A folder that was asked for and whose training runs is shown once. A run in another container has no record here.
void MachineView::look_at_runs() {
  std::vector<std::filesystem::path> folders = options_.runs;
  for (const WatchedProcess& each : seen_.processes) {
    std::error_code error;
    if (!each.process.run_folder.empty() &&
        std::filesystem::is_regular_file(std::filesystem::path(each.process.run_folder) / "metrics.jsonl", error)) {
      folders.emplace_back(each.process.run_folder);
    }
  }
  seen_.runs.clear();
  std::set<std::string> shown;
  for (const std::filesystem::path& folder : folders) {
    std::error_code error;
    const std::filesystem::path real = std::filesystem::weakly_canonical(folder, error);
    const std::string name = (error ? folder : real).native();
    if (shown.insert(name).second) {
      seen_.runs.emplace_back(name, tails_.try_emplace(name, name).first->second.look());
    }
  }
}

const Watched& MachineView::look(double seconds) {
  observe::Figures figures;
  machine_.report(seconds, figures);
  seen_.machine = values(figures);
  seen_.cores = device::cpu_quota(options_.root).cores;
  const device::MachineFacts facts = device::machine_facts(options_.root);
  if (facts.memory_bytes > 0 && facts.available_bytes >= 0) {
    seen_.memory_bytes = static_cast<double>(facts.memory_bytes);
    seen_.available_bytes = static_cast<double>(facts.available_bytes);
    remember(seen_.memory, 1 - *seen_.available_bytes / *seen_.memory_bytes);
  }
  if (const auto busy = seen_.machine.find("machine.busy_cores"); busy != seen_.machine.end()) {
    remember(seen_.busy_cores, busy->second);
  }
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    gpus_[i]->sample();
    gpus_[i]->report(seconds, figures);
    WatchedGpu& gpu = seen_.gpus[i];
    gpu.figures = values(figures);
    if (const auto busy = gpu.figures.find("gpu" + std::to_string(i) + ".busy_share"); busy != gpu.figures.end()) {
      remember(gpu.busy, busy->second);
    }
  }
  look_at_processes(seconds);
  look_at_runs();
  return seen_;
}

}  // namespace stoker::study
