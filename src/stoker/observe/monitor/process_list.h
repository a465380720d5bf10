// SPDX-License-Identifier: Apache-2.0
// All processes of the machine, as far as this user may see them: who they are, and which device files and files in
// /dev/shm they hold open. A process that ends meanwhile is left out. Used by `stoker ps` and `stoker top`.
// Thread-safe: no state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stoker/observe/monitor/process_reader.h"

namespace stoker::observe {

struct ListedProcess {
  int pid = 0;
  ProcessTimes times;
  std::string command;  // with its arguments; the name in brackets if it has none (a dead one, a kernel thread)
  std::string user;     // name, or number if it has none here
  unsigned uid = 0;
  double age_seconds = 0;
  std::string container;                // "docker 3f2a9c1b04de", "pod 1b2c..."; empty: none known
  bool files_known = false;             // its open files could be listed: own processes, or as root
  std::vector<std::string> open_files;  // paths that begin with one of the prefixes asked for
  // Of a Stoker training, whatever its program is called: the folder, with a plan.json, whose metrics.jsonl it writes,
  // as the process names it. Empty: none.
  std::string run_folder;
};

// Reads /proc below root. prefixes: of the open files to list, such as "/dev/nvidia".
[[nodiscard]] std::vector<ListedProcess> list_processes(const std::vector<std::string>& prefixes,
                                                        const std::filesystem::path& root = "/");
// One of them; none if there is no such process.
[[nodiscard]] std::optional<ListedProcess> read_process(int pid, const std::vector<std::string>& prefixes,
                                                        const std::filesystem::path& root = "/");

// Files below prefix that the process has mapped into its memory, as the kernel names them; none if that may not be
// read.
[[nodiscard]] std::optional<std::vector<std::string>> mapped_files(int pid, std::string_view prefix,
                                                                   const std::filesystem::path& root = "/");

// The container that the content of /proc/PID/cgroup names, by the ids in the paths of Docker, Podman, containerd and
// Kubernetes.
[[nodiscard]] std::string container_of(std::string_view cgroup);

}  // namespace stoker::observe
