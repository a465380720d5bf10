// SPDX-License-Identifier: Apache-2.0
// Figures of one process from its files in /proc (proc(5)). A process that ends while it is read, or that another user
// owns, has missing figures. Used by the monitor, `stoker ps` and `stoker top`. One thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "stoker/device/kernel_file.h"

namespace stoker::observe {

// Counters since the process started, and sizes now. Of a thread: its own.
struct ProcessTimes {
  std::string name;  // any bytes, blanks, parentheses and newlines too; at most 15
  char state = '?';  // 'R' runs, 'S' sleeps, 'D' waits for a disk or a device, 'Z' is dead and not yet collected
  std::optional<double> user_seconds, system_seconds;
  std::optional<double> page_faults, disk_faults;  // disk: had to wait for a disk
  std::optional<double> threads, resident_bytes;
  std::optional<double> parent;         // pid
  std::optional<double> session;        // pid of the process that leads it
  std::optional<double> start_seconds;  // after the machine's start
};

// The content of /proc/PID/stat or /proc/PID/task/TID/stat; all missing if it is not such a line.
[[nodiscard]] ProcessTimes parse_stat(std::string_view line);

// Bytes that read() and write() handed over, and those that a disk delivered: the difference came from memory.
struct ProcessIo {
  std::optional<double> asked_bytes, read_bytes, written_bytes;
};
[[nodiscard]] ProcessIo parse_io(std::string_view text);

struct ProcessPages {
  std::optional<double> proportional_bytes;  // PSS: shared pages divided by the number of processes that share them
  std::optional<double> private_dirty_bytes;
};
// smaps_rollup: takes milliseconds in a large process.
[[nodiscard]] ProcessPages parse_smaps(std::string_view text);

// Descriptors that a process holds; none if they cannot be listed.
[[nodiscard]] std::optional<double> open_files(const std::filesystem::path& process);

// One process, whose files stay open.
class ProcessReader {
 public:
  // process: its folder, such as /proc/self.
  explicit ProcessReader(const std::filesystem::path& process)
      : stat_(process / "stat"), io_(process / "io"), smaps_(process / "smaps_rollup"), folder_(process) {}

  [[nodiscard]] ProcessTimes times() { return parse_stat(stat_.read()); }
  [[nodiscard]] ProcessIo io() { return parse_io(io_.read()); }
  [[nodiscard]] ProcessPages pages() { return parse_smaps(smaps_.read()); }
  [[nodiscard]] std::optional<double> files() const { return open_files(folder_); }

 private:
  device::KernelFile stat_, io_, smaps_;
  std::filesystem::path folder_;
};

}  // namespace stoker::observe
