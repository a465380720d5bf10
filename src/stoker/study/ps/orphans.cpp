// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/ps/orphans.h"

#include <algorithm>
#include <array>

namespace stoker::study {
namespace {

using observe::ListedProcess;

constexpr std::array<std::string_view, 6> kReapers = {"systemd",     "init",      "tini",
                                                      "docker-init", "dumb-init", "catatonit"};

bool is_reaper(const ListedProcess& process) {
  return std::ranges::find(kReapers, process.times.name) != kReapers.end();
}

// Python starts workers of its own; torch names its main thread.
bool is_python(const ListedProcess& process) {
  const std::string_view program = std::string_view(process.command).substr(0, process.command.find(' '));
  return process.times.name.find("python") != std::string::npos || program.find("python") != program.npos ||
         process.times.name.starts_with("pt_main");
}

}  // namespace

bool is_worker(const ListedProcess& process) {
  for (const char* sign : {"torch_shm_manager", "multiprocessing.spawn", "multiprocessing.resource_tracker",
                           "multiprocessing-fork", "pt_data_worker", "torch/_inductor/compile_worker"}) {
    if (process.command.find(sign) != process.command.npos || process.times.name.find(sign) != std::string::npos) {
      return true;
    }
  }
  return false;
}

// A reaper starts no workers. What else it starts leads a session (services of systemd) or is in the reaper's own (the
// program of a container); an orphan is in the session of a shell, which may have ended.
bool is_orphan(const ListedProcess& process, const ListedProcess* parent) {
  if (!process.times.parent || (*process.times.parent != 1 && (parent == nullptr || !is_reaper(*parent)))) {
    return false;
  }
  if (is_worker(process)) {
    return parent == nullptr || is_reaper(*parent) || !is_python(*parent);
  }
  const bool leads = process.times.session == process.pid;
  return !leads && parent != nullptr && process.times.session != parent->times.session;
}

}  // namespace stoker::study
