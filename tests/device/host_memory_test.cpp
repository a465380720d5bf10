// SPDX-License-Identifier: Apache-2.0
// Limits and free memory in made-up roots of cgroups v1, v2, both and none; and against the kernel: what is said to be
// available can be taken, and a little more cannot.
#include "stoker/device/host_memory.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>

#include "stoker/base/fmt.h"
#include "stoker/device/freed_memory.h"
#include "stoker/device/host_allocator.h"
#include "stoker/device/kernel_file.h"
#include "support/child.h"
#include "support/temp_folder.h"

namespace stoker::device {
namespace {

namespace fs = std::filesystem;
using testing::in_child;
using testing::TempFolder;

constexpr std::int64_t kMiB = 1 << 20, kGiB = 1 << 30;

// A machine of 1,000,000 kB with 800,000 kB available; this process holds 100 pages.
void write_machine(const TempFolder& root) {
  root.write("proc/meminfo", "MemTotal:       1000000 kB\nMemFree: 5 kB\nMemAvailable:    800000 kB\n");
  root.write("proc/self/statm", "5000 100 50 1 0 60 0\n");
  root.write("proc/self/limits",
             "Limit                     Soft Limit           Hard Limit           Units     \n"
             "Max address space         unlimited            unlimited            bytes     \n");
}
const std::int64_t kTotal = 1'024'000'000, kFree = 819'200'000;

void write_v2(const TempFolder& root, const std::string& group, const char* limit, const char* used,
              const char* cache) {
  const std::string folder = "sys/fs/cgroup" + group + "/";
  root.write(folder + "memory.max", limit);
  root.write(folder + "memory.current", used);
  root.write(folder + "memory.stat", fmt::format("anon 5\ninactive_file_other 9\ninactive_file {}\nslab 7\n", cache));
}

void write_v1(const TempFolder& root, const std::string& group, const char* limit, const char* used,
              const char* cache) {
  const std::string folder = "sys/fs/cgroup/memory" + group + "/";
  root.write(folder + "memory.limit_in_bytes", limit);
  root.write(folder + "memory.usage_in_bytes", used);
  root.write(folder + "memory.stat", fmt::format("inactive_file 1\ntotal_inactive_file {}\n", cache));
}

TEST(HostMemory, WithoutGroupsItIsTheMachine) {
  const TempFolder root;
  write_machine(root);
  const HostMemory memory = host_memory(root.path());
  const std::int64_t own = 100 * ::sysconf(_SC_PAGESIZE);
  EXPECT_EQ(memory.limit, kTotal);
  EXPECT_EQ(memory.available, kFree);
  EXPECT_EQ(memory.own_resident, own);
  EXPECT_EQ(memory.used_by_others, kTotal - kFree - own);
  EXPECT_EQ(memory.reason, "the machine's RAM");
}

TEST(HostMemory, NothingIsKnownWithoutFiles) {
  const HostMemory memory = host_memory("/nonexistent");
  EXPECT_EQ(memory.limit, -1);
  EXPECT_EQ(memory.available, -1);
  EXPECT_EQ(memory.own_resident, -1);
  EXPECT_EQ(memory.used_by_others, -1);
  EXPECT_EQ(memory.reason, "");
  EXPECT_EQ(default_host_cap(memory, 5), -1);
}

// The group with the lowest limit is not the one that leaves the least.
TEST(HostMemory, EveryAncestorOfV2Counts) {
  const TempFolder root;
  write_machine(root);
  root.write("proc/self/cgroup", "0::/jobs/one\n");
  write_v2(root, "/jobs/one", "500000000\n", "100000000\n", "20000000");
  write_v2(root, "/jobs", "600000000\n", "450000000\n", "30000000");  // neighbours use most of it
  write_v2(root, "", "max\n", "999999999\n", "0");
  HostMemory memory = host_memory(root.path());
  EXPECT_EQ(memory.limit, 500'000'000);
  EXPECT_EQ(memory.available, 180'000'000);
  EXPECT_EQ(memory.reason, fmt::format("memory.max of {}", (root / "sys/fs/cgroup/jobs").native()));

  root.write("sys/fs/cgroup/jobs/one/memory.high", "150000000\n");  // beyond it the kernel slows the process down
  memory = host_memory(root.path());
  EXPECT_EQ(memory.limit, 150'000'000);
  EXPECT_EQ(memory.available, 70'000'000);

  root.write("sys/fs/cgroup/jobs/memory.current", "900000000\n");  // above the limit while the kernel reclaims
  memory = host_memory(root.path());
  EXPECT_EQ(memory.available, 0);
  EXPECT_EQ(default_host_cap(memory, 77), 77);
}

TEST(HostMemory, AGroupWithoutUsageOnlyLimits) {
  const TempFolder root;
  write_machine(root);
  root.write("proc/self/cgroup", "0::/hidden/in/a/container\n");
  root.write("sys/fs/cgroup/memory.max", "300000000\n");
  const HostMemory memory = host_memory(root.path());
  EXPECT_EQ(memory.limit, 300'000'000);
  EXPECT_EQ(memory.available, 300'000'000);
}

TEST(HostMemory, V1AndBothTogether) {
  const TempFolder root;
  write_machine(root);
  root.write("proc/self/cgroup", "9:cpu:/x\n4:memory:/a/b\n0::/c\n");
  write_v1(root, "/a/b", "9223372036854771712\n", "1\n", "0");  // v1's value for unlimited
  write_v1(root, "/a", "400000000\n", "250000000\n", "50000000");
  HostMemory memory = host_memory(root.path());
  EXPECT_EQ(memory.limit, 400'000'000);
  EXPECT_EQ(memory.available, 200'000'000);
  root.write("sys/fs/cgroup/unified/c/memory.max", "399999999\n");
  root.write("sys/fs/cgroup/unified/c/memory.current", "300000000\n");
  memory = host_memory(root.path());
  EXPECT_EQ(memory.limit, 399'999'999);
  EXPECT_EQ(memory.available, 99'999'999);
}

TEST(HostMemory, AddressesAreLimitedByUlimit) {
  const TempFolder root;
  write_machine(root);
  const std::int64_t mapped = 5000 * ::sysconf(_SC_PAGESIZE);
  root.write("proc/self/limits",
             fmt::format("Max address space         {}             unlimited   bytes     \n", mapped + 9999));
  const HostMemory memory = host_memory(root.path());
  EXPECT_EQ(memory.limit, mapped + 9999);
  EXPECT_EQ(memory.available, 9999);
  EXPECT_EQ(memory.reason, "ulimit -v");
}

TEST(HostMemory, TheLimitAloneIsTheSame) {
  const TempFolder root;
  write_machine(root);
  root.write("proc/self/cgroup", "4:memory:/a/b\n0::/c\n");
  EXPECT_EQ(memory_limit_bytes(root.path()), kTotal);
  write_v1(root, "/a/b", "700000\n", "1\n", "0");
  EXPECT_EQ(memory_limit_bytes(root.path()), 700'000);
  root.write("sys/fs/cgroup/c/memory.max", "max\n");
  root.write("sys/fs/cgroup/memory.max", "600000\n");
  EXPECT_EQ(memory_limit_bytes(root.path()), 600'000);
  EXPECT_EQ(memory_limit_bytes("/nonexistent"), -1);
  EXPECT_EQ(memory_limit_bytes(), host_memory().limit);
}

TEST(HostMemory, TheMarginIsATwentiethWithinBounds) {
  EXPECT_EQ(host_margin(100 * kMiB), 64 * kMiB);
  EXPECT_EQ(host_margin(10 * kGiB), 512 * kMiB);
  EXPECT_EQ(host_margin(100 * kGiB), kGiB);
  HostMemory memory;
  memory.limit = 10 * kGiB;
  memory.available = 3 * kGiB;
  EXPECT_EQ(default_host_cap(memory, 2 * kGiB), 5 * kGiB - 512 * kMiB);
}

TEST(HostMemory, OfThisMachine) {
  const HostMemory memory = host_memory();
  EXPECT_GT(memory.available, 0);
  EXPECT_LE(memory.available, memory.limit);
  EXPECT_GT(memory.own_resident, 0);
  EXPECT_FALSE(memory.reason.empty());
}

// Bytes that the kernel maps and fills: true if it had them.
bool take(std::int64_t bytes, bool touch) {
  void* memory =
      ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return false;
  }
  for (std::int64_t at = 0; touch && at < bytes; at += 4096) {
    static_cast<volatile char*>(memory)[at] = 1;
  }
  return true;
}

std::int64_t mapped_bytes() { return kernel_bytes(read_kernel_file("/proc/self/status"), "VmSize"); }

// Sets `ulimit -v` so that this many bytes can still be mapped.
bool leave_addresses(std::int64_t bytes) {
  const rlimit limit{static_cast<rlim_t>(mapped_bytes() + bytes), RLIM_INFINITY};
  return ::setrlimit(RLIMIT_AS, &limit) == 0;
}

TEST(HostMemory, AddressesThatAreLeftCanBeMapped) {
  const auto end = in_child([] {
    const std::int64_t mapped = mapped_bytes();
    if (!leave_addresses(300 * kMiB)) {
      return 1;
    }
    const HostMemory memory = host_memory();
    if (memory.limit != mapped + 300 * kMiB || memory.reason != "ulimit -v") {
      return 2;
    }
    return take(memory.available + 8 * kMiB, false) ? 3 : take(memory.available - 8 * kMiB, false) ? 0 : 4;
  });
  EXPECT_EQ(end.code, 0) << "2: the figures are wrong; 3: more could be mapped; 4: less could be mapped";
}

// A limit refuses what does not fit, not what would fit if kept memory went back first.
TEST(HostMemory, KeptMemoryGoesBackBeforeMemoryIsRefused) {
  if (!keeps_freed_memory()) {
    GTEST_SKIP() << "a sanitizer or the environment says how freed memory is handled";
  }
  const auto child = [](bool known) {  // whether the system is asked after the limit is set, or only its mmap() fails
    return in_child([known] {
      const auto block = [](std::int64_t bytes) { return at::empty({bytes}, at::kByte); };
      install_host_allocator();
      release_host_memory();
      (void)block(1);
      if (!leave_addresses(3 * kGiB)) {  // at most 1 GiB of it is the margin
        return 1;
      }
      if (known) {
        release_host_memory();
      }
      { const at::Tensor kept = block(1400 * kMiB); }
      if (host_reserved() < host_allocated() + 1400 * kMiB) {
        return 2;
      }
      { const at::Tensor larger = block(1900 * kMiB); }
      if (host_reserved() > host_allocated() + 1901 * kMiB) {
        return 3;
      }
      release_host_memory();
      return host_reserved() == host_allocated() ? 0 : 4;
    });
  };
  EXPECT_EQ(child(true).code, 0) << "2: nothing is kept; 3: it did not go back; 4: nor when asked to";
  EXPECT_EQ(child(false).code, 0) << "as above";
}

// A group of cgroups v1 with a limit, below the group of this process. Not usable without root or such a hierarchy.
class LimitedGroup {
 public:
  explicit LimitedGroup(std::int64_t bytes) {
    const std::string table = read_kernel_file("/proc/self/cgroup");
    const std::size_t at = table.find(":memory:");
    if (at == std::string::npos) {
      return;
    }
    const std::string own = table.substr(at + 8, table.find('\n', at) - at - 8);
    folder_ = "/sys/fs/cgroup/memory" + own + "/stoker-test-" + std::to_string(::getpid());
    std::error_code error;
    usable_ = fs::create_directory(folder_, error) && write("memory.limit_in_bytes", std::to_string(bytes));
  }
  ~LimitedGroup() {
    if (!folder_.empty()) {
      ::rmdir(folder_.c_str());
    }
  }
  LimitedGroup(const LimitedGroup&) = delete;
  LimitedGroup& operator=(const LimitedGroup&) = delete;
  [[nodiscard]] bool usable() const { return usable_; }
  [[nodiscard]] bool enter() const { return write("cgroup.procs", std::to_string(::getpid())); }

 private:
  [[nodiscard]] bool write(const char* name, const std::string& text) const {
    std::ofstream file(folder_ / name);
    file << text << std::flush;
    return file.good();
  }
  fs::path folder_;
  bool usable_ = false;
};

constexpr std::int64_t kLimit = 192 * kMiB;

TEST(HostMemory, WhatAGroupLeavesCanBeTakenAndNoMore) {
  const LimitedGroup group(kLimit);
  if (!group.usable()) {
    GTEST_SKIP() << "needs root and a memory hierarchy of cgroups v1";
  }
  const TempFolder folder;
  const auto child = [&](std::int64_t more) {
    return in_child([&] {
      if (!group.enter()) {
        return 1;
      }
      const std::int64_t before = host_memory().available;
      if (host_memory().limit != kLimit || before > kLimit || before < kLimit - 16 * kMiB) {
        return 2;
      }
      {  // the kernel drops this cache before it kills
        std::ofstream file(folder / "cached");
        file << std::string(64 * kMiB, 'x') << std::flush;
      }
      ::sync();
      return take(48 * kMiB, true) && take(host_memory().available + more, true) ? 0 : 3;
    });
  };
  const testing::ChildEnd fits = child(-12 * kMiB);
  EXPECT_EQ(fits.code, 0) << "2: the figures are wrong; signal " << fits.signal << ": less could be taken";
  const testing::ChildEnd too_much = child(12 * kMiB);
  EXPECT_EQ(too_much.signal, SIGKILL) << "code " << too_much.code << ": more could be taken";
}

// The cache of files does not count as used: the kernel drops it.
TEST(HostMemory, CachedFilesLeaveTheMemoryAvailable) {
  const LimitedGroup group(kLimit);
  if (!group.usable()) {
    GTEST_SKIP() << "needs root and a memory hierarchy of cgroups v1";
  }
  const TempFolder folder;
  const auto end = in_child([&] {
    if (!group.enter()) {
      return 1;
    }
    const std::int64_t before = host_memory().available;
    {
      std::ofstream file(folder / "cached");
      const std::string piece(kMiB, 'x');
      for (int i = 0; i < 100; ++i) {
        file << piece;
      }
    }
    return before - host_memory().available < 24 * kMiB ? 0 : 3;
  });
  EXPECT_EQ(end.code, 0) << "3: cached files count as used";
}

}  // namespace
}  // namespace stoker::device
