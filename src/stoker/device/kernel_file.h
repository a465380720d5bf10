// SPDX-License-Identifier: Apache-2.0
// Reads small kernel files (/proc, /sys/fs/cgroup): they report a size of 0, and any of them may be missing. Used by
// cpu_quota, host_memory, process_facts and the monitor. Functions without state; a KernelFile is used by one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace stoker::device {

// The whole content; empty if it cannot be read.
[[nodiscard]] std::string read_kernel_file(const std::filesystem::path& path);
// The text after "key" and a colon on its own line, without surrounding blanks: field("MemTotal: 8 kB", "MemTotal") is
// "8 kB". Empty if there is none.
[[nodiscard]] std::string_view kernel_field(std::string_view text, std::string_view key);
// The number that a text starts with; none if it starts with something else ("max").
[[nodiscard]] std::optional<std::int64_t> leading_number(std::string_view text);
// Bytes of a field in kB, as in /proc/meminfo and /proc/self/status; -1 if it is missing.
[[nodiscard]] std::int64_t kernel_bytes(std::string_view text, std::string_view key);

// A file that is read again and again, and stays open for that.
class KernelFile {
 public:
  explicit KernelFile(const std::filesystem::path& path);
  ~KernelFile();
  KernelFile(KernelFile&& other) noexcept;
  KernelFile& operator=(KernelFile&& other) noexcept;

  // Its content now, valid until the next call; empty if it cannot be read.
  [[nodiscard]] std::string_view read();

 private:
  int descriptor_ = -1;
  std::string content_;
};

}  // namespace stoker::device
