// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/process_facts.h"

#include <malloc.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <cstdlib>

#include "stoker/base/fmt.h"
#include "stoker/device/kernel_file.h"

namespace stoker::device {
namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  for (std::size_t start = text.find_first_not_of(' '); start != std::string_view::npos;) {
    const std::size_t end = text.find(' ', start);
    result.emplace_back(text.substr(start, end - start));
    start = end == std::string_view::npos ? end : text.find_first_not_of(' ', end);
  }
  return result;
}

}  // namespace

ProcessMemory process_memory(const std::filesystem::path& root) {
  const std::string status = read_kernel_file(root / "proc/self/status");
  return {kernel_bytes(status, "VmRSS"), kernel_bytes(status, "VmHWM")};
}

std::int64_t resident_bytes(const std::filesystem::path& root) {
  const std::string pages = read_kernel_file(root / "proc/self/statm");  // "size resident shared ..."
  const std::size_t blank = pages.find(' ');
  const auto resident = blank == pages.npos ? std::nullopt : leading_number(std::string_view(pages).substr(blank + 1));
  return resident ? *resident * ::sysconf(_SC_PAGESIZE) : -1;
}

HeapBytes heap_bytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return {static_cast<std::int64_t>(info.uordblks + info.hblkhd), static_cast<std::int64_t>(info.fordblks)};
}

std::int64_t involuntary_switches() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

MachineFacts machine_facts(const std::filesystem::path& root) {
  const std::string cpu = read_kernel_file(root / "proc/cpuinfo");
  const std::string memory = read_kernel_file(root / "proc/meminfo");
  const std::string load = read_kernel_file(root / "proc/loadavg");
  MachineFacts facts;
  facts.cpu = kernel_field(cpu, "model name");
  if (facts.cpu.empty()) {
    facts.cpu = "unknown CPU";
  }
  facts.cpu_flags = words(kernel_field(cpu, "flags"));
  facts.cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  facts.memory_bytes = kernel_bytes(memory, "MemTotal");
  facts.available_bytes = kernel_bytes(memory, "MemAvailable");
  facts.load_1min = load.empty() ? -1 : std::strtod(load.c_str(), nullptr);
  utsname system{};
  if (::uname(&system) == 0) {
    facts.kernel = fmt::format("{} {}", system.sysname, system.release);
  }
  return facts;
}

Versions versions() { return {TORCH_VERSION, __VERSION__}; }

}  // namespace stoker::device
