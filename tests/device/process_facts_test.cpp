// SPDX-License-Identifier: Apache-2.0
// The kernel's files are read correctly, and the figures follow the process.
#include "stoker/device/process_facts.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "support/temp_folder.h"

namespace stoker::device {
namespace {

TEST(ProcessFacts, ReadsTheKernelsFiles) {
  const testing::TempFolder root;
  root.write("proc/cpuinfo",
             "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu avx2 amx_bf16\n\n"
             "processor\t: 1\nmodel name\t: Another\n");
  root.write("proc/meminfo", "MemTotal:       16000 kB\nMemAvailable:    8000 kB\n");
  root.write("proc/loadavg", "1.25 0.50 0.10 2/100 4242\n");
  root.write("proc/self/statm", "9 3 1 4 0 5 0\n");
  root.write("proc/self/status", "Name:\tx\nVmHWM:\t    20 kB\nVmRSS:\t    10 kB\n");
  const MachineFacts facts = machine_facts(root.path());
  EXPECT_EQ(facts.cpu, "Some CPU @ 2 GHz");
  EXPECT_EQ(facts.cpu_flags, (std::vector<std::string>{"fpu", "avx2", "amx_bf16"}));
  EXPECT_EQ(facts.memory_bytes, 16'384'000);
  EXPECT_EQ(facts.available_bytes, 8'192'000);
  EXPECT_DOUBLE_EQ(facts.load_1min, 1.25);
  EXPECT_EQ(process_memory(root.path()).resident, 10'240);
  EXPECT_EQ(resident_bytes(root.path()), 3 * ::sysconf(_SC_PAGESIZE));
  EXPECT_EQ(process_memory(root.path()).peak, 20'480);
}

TEST(ProcessFacts, MissingIsMissing) {
  const MachineFacts facts = machine_facts("/nonexistent");
  EXPECT_EQ(facts.cpu, "unknown CPU");
  EXPECT_EQ(facts.memory_bytes, -1);
  EXPECT_EQ(facts.load_1min, -1);
  EXPECT_EQ(process_memory("/nonexistent").resident, -1);
  EXPECT_EQ(resident_bytes("/nonexistent"), -1);
}

TEST(ProcessFacts, ResidentFollowsWhatIsTouched) {
  constexpr std::size_t kBytes = 64 << 20;
  const std::int64_t before = process_memory().resident;
  ASSERT_GT(before, 0);
  // Directly from the kernel: an allocator might keep freed memory.
  void* block = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  std::memset(block, 1, kBytes);
  const ProcessMemory with = process_memory();
  EXPECT_GT(with.resident - before, static_cast<std::int64_t>(kBytes * 9 / 10));
  EXPECT_GE(with.peak, with.resident - (1 << 20));  // the kernel updates the two a few pages apart
  ASSERT_EQ(::munmap(block, kBytes), 0);
  EXPECT_LT(process_memory().resident, with.resident - static_cast<std::int64_t>(kBytes / 2));
}

TEST(ProcessFacts, ThisMachineHasCoresMemoryAndVersions) {
  const MachineFacts facts = machine_facts();
  EXPECT_GE(facts.cores, 1);
  EXPECT_GT(facts.memory_bytes, facts.available_bytes);
  EXPECT_EQ(facts.kernel.find("Linux "), 0U);
  EXPECT_EQ(versions().torch.find(std::to_string(TORCH_VERSION_MAJOR) + "."), 0U);
  EXPECT_FALSE(versions().compiler.empty());
}

}  // namespace
}  // namespace stoker::device
