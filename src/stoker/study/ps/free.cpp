// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/ps/free.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/study/ps/ps_text.h"

namespace stoker::study {
namespace {

constexpr std::string_view kWhere = "stoker.ps";
using observe::ListedProcess;

// A handle that never means another process, even if the number is used again.
class ProcessHandle {
 public:
  explicit ProcessHandle(int pid) : descriptor_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}
  ~ProcessHandle() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
    }
  }
  ProcessHandle(const ProcessHandle&) = delete;
  ProcessHandle& operator=(const ProcessHandle&) = delete;

  [[nodiscard]] bool valid() const { return descriptor_ >= 0; }
  [[nodiscard]] bool send(int signal) const {
    return ::syscall(SYS_pidfd_send_signal, descriptor_, signal, nullptr, 0) == 0;
  }
  [[nodiscard]] bool ends_within(double seconds) const {
    pollfd wait{descriptor_, POLLIN, 0};
    return ::poll(&wait, 1, static_cast<int>(seconds * 1000)) == 1;
  }

 private:
  int descriptor_;
};

ListedProcess look_at(int pid, const FreeOptions& options) {
  auto process = observe::read_process(pid, options.devices);
  if (!process) {
    fail<ConfigError>(kWhere, "there is no process {}; `stoker ps` lists the holders", pid);
  }
  if (pid == ::getpid() || pid == 1) {
    fail<ConfigError>(kWhere, "process {} is {}; give a holder of GPU memory", pid, pid == 1 ? "init" : "this command");
  }
  if (process->uid != ::geteuid() && ::geteuid() != 0) {
    fail<ConfigError>(kWhere, "process {} belongs to {}; only they or root can end it", pid, printable(process->user));
  }
  if (process->open_files.empty()) {
    fail<ConfigError>(kWhere,
                      "process {} ({}) has no GPU device open, so ending it frees no GPU memory; nothing was done", pid,
                      printable(process->times.name));
  }
  return *process;
}

}  // namespace

bool is_same_holder(const ListedProcess& before, const ListedProcess& now) {
  return before.pid == now.pid && before.times.start_seconds == now.times.start_seconds && before.uid == now.uid &&
         std::ranges::any_of(now.open_files, [&](const std::string& file) {
           return std::ranges::find(before.open_files, file) != before.open_files.end();
         });
}

bool free_gpu(int pid, const std::function<bool(const std::string&)>& agree, const FreeOptions& options) {
  const ListedProcess chosen = look_at(pid, options);
  const ProcessHandle handle(pid);
  if (!handle.valid()) {
    fail<IoError>(kWhere, "process {} cannot be held on to: {}", pid, std::strerror(errno));
  }
  if (!agree(
          fmt::format("pid {}, {}, for {}: {}\nholds {}\nEnd it? It gets SIGTERM, and SIGKILL after {:g} s. [yes/no] ",
                      pid, printable(chosen.user), age_text(chosen.age_seconds), printable(chosen.command),
                      printable(fmt::format("{}", fmt::join(chosen.open_files, ", "))), options.patience_seconds))) {
    return false;
  }
  if (!is_same_holder(chosen, look_at(pid, options))) {
    fail<ConfigError>(kWhere, "process {} has ended and its number was used again; nothing was done", pid);
  }
  if (!handle.send(SIGTERM)) {
    fail<IoError>(kWhere, "process {} cannot be ended: {}", pid, std::strerror(errno));
  }
  if (!handle.ends_within(options.patience_seconds) && handle.send(SIGKILL) &&
      !handle.ends_within(options.patience_seconds)) {
    fail<IoError>(kWhere,
                  "process {} does not end, not even by SIGKILL: it waits for the kernel (state D); see `dmesg`", pid);
  }
  return true;
}

}  // namespace stoker::study
