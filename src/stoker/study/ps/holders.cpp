// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/ps/holders.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "stoker/base/fmt.h"
#include "stoker/device/cpu_quota.h"
#include "stoker/device/gpu_process.h"
#include "stoker/device/process_facts.h"
#include "stoker/observe/monitor/notebook.h"
#include "stoker/observe/monitor/pitfalls.h"
#include "stoker/study/ps/orphans.h"

namespace stoker::study {
namespace {

namespace fs = std::filesystem;
using observe::ListedProcess;

constexpr const char* kShared = "/dev/shm/";
constexpr std::size_t kBusiest = 5;

using ByPid = std::map<int, ListedProcess>;

bool has_device(const ListedProcess& process, const std::vector<std::string>& devices) {
  return std::ranges::any_of(process.open_files, [&](const std::string& file) {
    return std::ranges::any_of(devices, [&](const std::string& prefix) { return file.starts_with(prefix); });
  });
}

const ListedProcess* parent_of(const ListedProcess& process, const ByPid& processes) {
  const auto found = processes.find(static_cast<int>(process.times.parent.value_or(0)));
  return found == processes.end() ? nullptr : &found->second;
}

bool is_left_over(const ListedProcess& process, const ByPid& processes) {
  return is_worker(process) && is_orphan(process, parent_of(process, processes));
}

double cpu_seconds(const ListedProcess& process) {
  return process.times.user_seconds.value_or(0) + process.times.system_seconds.value_or(0);
}

// What is odd about a process.
std::string remark_of(const std::optional<ListedProcess>& process, const ByPid& processes) {
  if (!process) {
    return "not visible from here: dead, or in another container";
  }
  if (process->times.state == 'Z') {
    return fmt::format("dead; its parent {} has not collected it", static_cast<int>(process->times.parent.value_or(0)));
  }
  if (process->times.state == 'D') {
    return "waits for the kernel";
  }
  if (is_left_over(*process, processes)) {
    return "left over: a worker whose parent has ended";
  }
  return process->times.state == 'T' ? "stopped by a signal" : "";
}

Holder holder_of(int gpu, std::int64_t bytes, int pid, const ByPid& processes) {
  Holder holder{gpu, bytes, pid, {}, ""};
  if (const auto found = processes.find(pid); found != processes.end()) {
    holder.process = found->second;
  }
  holder.remark = remark_of(holder.process, processes);
  return holder;
}

// What is odd about a process because it holds a GPU.
void remark_as_holder(Holder& holder, const ByPid& processes, const char* otherwise) {
  if (holder.remark.empty() && holder.process && is_orphan(*holder.process, parent_of(*holder.process, processes))) {
    holder.remark = "orphaned: the program that started it has ended (after nohup and a logout, too)";
  }
  if (holder.remark.empty()) {
    holder.remark = otherwise;
  }
}

void read_gpus(Holders& holders, const HoldersOptions& options, const ByPid& processes) {
  const device::Nvml& nvml = *options.nvml;
  for (int gpu = 0; gpu < nvml.count(); ++gpu) {
    const device::GpuFacts facts = nvml.facts(gpu);
    holders.gpus.push_back(
        {gpu, facts.name, facts.memory_bytes, nvml.state(gpu).memory_used_bytes, nvml.pace(gpu).busy_share, facts.mig});
    std::vector<Holder> here;
    for (const device::GpuHolder& each : nvml.holders(gpu)) {
      static const ByPid kNone;
      const auto pid = device::local_pid(each.pid, options.devices, options.root);
      Holder holder = holder_of(gpu, each.bytes, static_cast<int>(each.pid), pid ? processes : kNone);
      remark_as_holder(holder, processes, "");
      here.push_back(std::move(holder));
    }
    std::ranges::stable_sort(here, std::greater(), &Holder::bytes);
    std::ranges::move(here, std::back_inserter(holders.of_gpus));
  }
}

// Processes with an open device that the driver does not list: their memory may not be freed before they end.
void read_silent(Holders& holders, const HoldersOptions& options, const ByPid& processes) {
  for (const auto& [pid, process] : processes) {
    const bool listed = std::ranges::any_of(
        holders.of_gpus, [own = pid](const Holder& holder) { return holder.pid == own && holder.process; });
    if (!listed && has_device(process, options.devices)) {
      Holder holder = holder_of(-1, -1, pid, processes);
      remark_as_holder(holder, processes, "has a GPU device open; the driver reports no memory for it");
      holders.leftovers.push_back(std::move(holder));
    } else if (!listed && is_left_over(process, processes)) {
      holders.leftovers.push_back(holder_of(-1, -1, pid, processes));
    }
  }
}

std::vector<int> notebooks(const HoldersOptions& options, const ByPid& processes) {
  std::vector<int> pids;
  for (const auto& [pid, process] : processes) {
    if (has_device(process, options.devices) && observe::is_notebook_kernel(pid, options.root)) {
      pids.push_back(pid);
    }
  }
  return pids;
}

// A file may be open, or mapped and closed.
bool uses(const std::vector<std::string>& files, const std::string& path) {
  return std::ranges::any_of(files, [&](const std::string& file) { return file.starts_with(path); });
}

void read_shared(Holders& holders, const fs::path& root, const ByPid& processes) {
  std::error_code error;
  fs::directory_iterator it(root / "dev/shm", error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    struct stat info {};
    if (::lstat(it->path().c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
      holders.shared.push_back({kShared + it->path().filename().native(), info.st_blocks * 512, {}, false});
    }
  }
  if (holders.shared.empty()) {
    return;
  }
  bool all_seen = true;
  for (const auto& [pid, process] : processes) {
    const bool kernel_thread = process.times.resident_bytes.value_or(0) == 0;
    const auto mapped =
        kernel_thread ? std::optional(std::vector<std::string>()) : observe::mapped_files(pid, kShared, root);
    all_seen = all_seen && mapped && process.files_known;
    for (SharedFile& file : holders.shared) {
      if (uses(process.open_files, file.path) || uses(mapped.value_or(std::vector<std::string>()), file.path)) {
        file.pids.push_back(pid);
      }
    }
  }
  for (SharedFile& file : holders.shared) {
    file.left_over = file.pids.empty() && all_seen;
  }
  std::ranges::sort(holders.shared, std::greater(), &SharedFile::bytes);
}

void read_runs(Holders& holders, const ByPid& processes) {
  std::vector<const ListedProcess*> busy;
  for (const auto& [pid, process] : processes) {
    if (!process.run_folder.empty()) {
      holders.runs.push_back(holder_of(-1, -1, pid, processes));
    }
    if (process.age_seconds > 1 && process.times.resident_bytes.value_or(0) > 0) {
      busy.push_back(&process);
    }
  }
  std::ranges::sort(busy, std::greater(),
                    [](const ListedProcess* each) { return cpu_seconds(*each) / each->age_seconds; });
  busy.resize(std::min(busy.size(), kBusiest));
  for (const ListedProcess* each : busy) {
    holders.busiest.push_back(holder_of(-1, -1, each->pid, processes));
  }
}

}  // namespace

Holders find_holders(const HoldersOptions& options) {
  std::vector<std::string> prefixes = options.devices;
  prefixes.emplace_back(kShared);
  ByPid processes;
  for (ListedProcess& process : observe::list_processes(prefixes, options.root)) {
    processes.emplace(process.pid, std::move(process));
  }
  Holders holders;
  holders.all_visible = std::ranges::all_of(processes, [](const auto& each) { return each.second.files_known; });
  holders.no_gpu = options.nvml == nullptr ? "no NVIDIA driver was found" : options.nvml->missing();
  observe::Surroundings around = observe::surroundings(options.root);
  if (holders.no_gpu.empty()) {
    read_gpus(holders, options, processes);
    for (const HeldGpu& gpu : holders.gpus) {
      if (gpu.mig) {
        around.divided_gpus.push_back(gpu.name);
      }
    }
  }
  around.notebooks = notebooks(options, processes);
  read_silent(holders, options, processes);
  read_shared(holders, options.root, processes);
  read_runs(holders, processes);
  holders.pitfalls = observe::pitfalls(around);
  const device::MachineFacts machine = device::machine_facts(options.root);
  holders.cores = device::cpu_quota(options.root).cores;
  if (machine.memory_bytes >= 0 && machine.available_bytes >= 0) {
    holders.memory_bytes = static_cast<double>(machine.memory_bytes);
    holders.available_bytes = static_cast<double>(machine.available_bytes);
  }
  return holders;
}

Holders find_holders() {
  HoldersOptions options;
  options.nvml = &device::machine_nvml();
  return find_holders(options);
}

}  // namespace stoker::study
