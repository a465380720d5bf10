// SPDX-License-Identifier: Apache-2.0
// Quotas of cgroups v1 and v2 in made-up roots; the affinity mask against the kernel's own list.
#include "stoker/device/cpu_quota.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "stoker/device/kernel_file.h"
#include "support/temp_folder.h"

namespace stoker::device {
namespace {

using testing::TempFolder;

// "0-3,8" counts 5.
int count_list(std::string_view list) {
  int count = 0;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view range = list.substr(0, comma);
    const std::size_t dash = range.find('-');
    const auto first = leading_number(range);
    const auto last = dash == std::string_view::npos ? first : leading_number(range.substr(dash + 1));
    count += static_cast<int>(last.value() - first.value()) + 1;
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
  }
  return count;
}

TEST(CpuQuota, AffinityIsWhatTheKernelSays) {
  const std::string status = read_kernel_file("/proc/thread-self/status");
  EXPECT_EQ(cpu_quota("/nonexistent").affinity, count_list(kernel_field(status, "Cpus_allowed_list")));
}

TEST(CpuQuota, OneCoreWhenPinnedToOne) {
  int cores = 0;
  std::jthread([&] {  // the mask belongs to the thread
    cpu_set_t mask;
    CPU_ZERO(&mask);
    CPU_SET(sched_getcpu(), &mask);
    ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
    cores = cpu_quota().cores;
  })
      .join();
  EXPECT_EQ(cores, 1);
}

TEST(CpuQuota, TightestAncestorOfV2Holds) {
  const TempFolder root;
  root.write("proc/self/cgroup", "0::/jobs/one\n");
  root.write("sys/fs/cgroup/jobs/one/cpu.max", "max 100000\n");
  root.write("sys/fs/cgroup/jobs/cpu.max", "50000 100000\n");
  root.write("sys/fs/cgroup/cpu.max", "90000 100000\n");
  const CpuQuota quota = cpu_quota(root.path());
  EXPECT_DOUBLE_EQ(quota.quota, 0.5);
  EXPECT_EQ(quota.cores, 1);  // never 0
  EXPECT_EQ(quota.reason.find("cgroup quota of 0.5 cores"), 0U) << quota.reason;
}

TEST(CpuQuota, V1InEveryMountName) {
  for (const char* mount : {"cpu", "cpu,cpuacct"}) {
    const TempFolder root;
    root.write("proc/self/cgroup", "9:memory:/x\n4:cpu,cpuacct:/box\n0::/\n");
    const std::string group = std::string("sys/fs/cgroup/") + mount + "/box/";
    root.write(group + "cpu.cfs_quota_us", "75000\n");
    root.write(group + "cpu.cfs_period_us", "100000\n");
    EXPECT_DOUBLE_EQ(cpu_quota(root.path()).quota, 0.75) << mount;
  }
}

TEST(CpuQuota, NoLimitIsTheMask) {
  const TempFolder root;
  root.write("proc/self/cgroup", "4:cpu:/\n0::/\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/cpu.max", "max 100000\n");
  const CpuQuota quota = cpu_quota(root.path());
  EXPECT_EQ(quota.quota, 0);
  EXPECT_EQ(quota.cores, quota.affinity);
  // Wide quotas do not add cores.
  root.write("sys/fs/cgroup/cpu.max", "409600000 100000\n");
  EXPECT_EQ(cpu_quota(root.path()).cores, quota.affinity);
}

TEST(CpuQuota, RootOfTheMountCountsWhenTheGroupIsNotVisible) {
  const TempFolder root;
  root.write("proc/self/cgroup", "0::/docker/0123abcd\n");
  root.write("sys/fs/cgroup/cpu.max", "30000 100000\n");
  EXPECT_DOUBLE_EQ(cpu_quota(root.path()).quota, 0.3);
}

}  // namespace
}  // namespace stoker::device
