// SPDX-License-Identifier: Apache-2.0
// The readers of the monitor in made-up roots of /proc and /sys, hostile names of threads and processes that vanish
// included, and on this process.
#include <gmock/gmock.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmath>
#include <map>
#include <thread>

#include "stoker/base/clock.h"
#include "stoker/observe/monitor/group_reader.h"
#include "stoker/observe/monitor/machine_reader.h"
#include "stoker/observe/monitor/pitfalls.h"
#include "stoker/observe/monitor/process_reader.h"
#include "stoker/observe/monitor/thread_reader.h"
#include "support/temp_folder.h"

namespace stoker::observe {
namespace {

using stoker::testing::TempFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

double tick() { return 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)); }

// A line of /proc/PID/stat: 300 ticks in user mode, 70 in the system, unless told otherwise.
std::string stat(const std::string& pid, const std::string& name, char state = 'S', int user = 300, int system = 70) {
  return pid + " (" + name + ") " + state + " 77 78 79 0 -1 4194304 1000 0 20 0 " + std::to_string(user) + " " +
         std::to_string(system) + " 0 0 20 0 9 0 32318 3133440 387 18446744073709551615 1 1 1 0 0 0 0 0\n";
}

std::map<std::string, double> by_name(Figures& figures) {
  std::map<std::string, double> result;
  for (const core::Figure& figure : figures.take()) {
    const double rounded = std::round(figure.value * 1e9) / 1e9;
    EXPECT_TRUE(result.emplace(figure.name, rounded).second) << figure.name << " twice";
  }
  return result;
}

TEST(MonitorProcess, StatOfAHostileNameIsRead) {
  for (const std::string name : {"python3", "a b", "tricky) R 1 2 (", "((", ")", "new\nline", ""}) {
    const ProcessTimes times = parse_stat(stat("12", name, 'D'));
    EXPECT_EQ(times.name, name);
    EXPECT_EQ(times.state, 'D');
    EXPECT_DOUBLE_EQ(times.user_seconds.value(), 300 * tick());
    EXPECT_DOUBLE_EQ(times.system_seconds.value(), 70 * tick());
    EXPECT_EQ(times.parent, 77);
    EXPECT_EQ(times.session, 79);
    EXPECT_EQ(times.page_faults, 1000);
    EXPECT_EQ(times.disk_faults, 20);
    EXPECT_EQ(times.threads, 9);
    EXPECT_DOUBLE_EQ(times.start_seconds.value(), 32318 * tick());
    EXPECT_EQ(times.resident_bytes, 387.0 * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  }
}

TEST(MonitorProcess, WhatIsNotThereIsMissing) {
  for (const char* line : {"", "12", "12 (", "12 )(", "12 (a)", "12 (a) R 1 2"}) {
    const ProcessTimes times = parse_stat(line);
    EXPECT_FALSE(times.user_seconds || times.resident_bytes || times.start_seconds) << line;
  }
  EXPECT_FALSE(parse_io("").read_bytes);
  EXPECT_FALSE(parse_smaps("Rss: 12 kB").proportional_bytes);
  EXPECT_EQ(open_files("/nonexistent"), std::nullopt);
  ProcessReader gone("/proc/999999999");
  EXPECT_FALSE(gone.times().user_seconds || gone.io().asked_bytes || gone.pages().private_dirty_bytes || gone.files());
}

TEST(MonitorProcess, AskedAndDeliveredBytesDiffer) {
  const ProcessIo io = parse_io("rchar: 7284\nwchar: 308\nsyscr: 14\nsyscw: 2\nread_bytes: 4096\nwrite_bytes: 8192\n");
  EXPECT_EQ(io.asked_bytes, 7284);
  EXPECT_EQ(io.read_bytes, 4096);
  EXPECT_EQ(io.written_bytes, 8192);
  const ProcessPages pages = parse_smaps("Rss:   900 kB\nPss:   100 kB\nPss_Dirty:  7 kB\nPrivate_Dirty:   60 kB\n");
  EXPECT_EQ(pages.proportional_bytes, 100 * 1024);
  EXPECT_EQ(pages.private_dirty_bytes, 60 * 1024);
}

TEST(MonitorProcess, ThisProcessAsTheKernelCountsIt) {
  ProcessReader self("/proc/self");
  EXPECT_NEAR(self.times().user_seconds.value() + self.times().system_seconds.value(), process_cpu_s(), 0.1);
  EXPECT_GT(self.times().resident_bytes.value(), 1 << 20);
  const double before = self.files().value();
  const device::KernelFile another("/proc/self/stat");
  EXPECT_EQ(self.files(), before + 1);
  EXPECT_GT(self.pages().proportional_bytes.value_or(1), 0);
}

TEST(MonitorThreads, NamesAreGroupsWithoutNumbers) {
  EXPECT_EQ(thread_group("loader", "stoker", false), "loader");
  EXPECT_EQ(thread_group("loader12", "stoker", false), "loader");
  EXPECT_EQ(thread_group("pt_autograd_0", "stoker", false), "pt_autograd");
  EXPECT_EQ(thread_group("cuda-EvtHandlr", "stoker", false), "cuda-EvtHandlr");
  EXPECT_EQ(thread_group("a b)\n\"c\"", "stoker", false), "a_b___c");
  EXPECT_EQ(thread_group("stoker", "stoker", true), "main");
  EXPECT_EQ(thread_group("stoker", "stoker", false), "unnamed");
  EXPECT_EQ(thread_group("123", "stoker", false), "unnamed");
  EXPECT_EQ(thread_group("", "stoker", false), "unnamed");
}

void write_thread(const TempFolder& root, int id, const std::string& name, int ran_ms, long waited_ns, int switches,
                  char state = 'S') {
  const std::string folder = "proc/self/task/" + std::to_string(id) + "/";
  root.write(folder + "stat", stat(std::to_string(id), name, state, ran_ms / 10, 0));  // rounded to ticks
  root.write(folder + "schedstat", std::to_string(ran_ms) + "000000 " + std::to_string(waited_ns) + " 17\n");
  root.write(folder + "status", "Name:\tx\nvoluntary_ctxt_switches:\t" + std::to_string(switches) +
                                    "\nnonvoluntary_ctxt_switches:\t" + std::to_string(2 * switches) + "\n");
}

TEST(MonitorThreads, AGroupIsTheSumOfItsThreads) {
  const TempFolder root;
  root.write("proc/self/stat", stat("10", "stoker"));
  write_thread(root, 10, "stoker", 100, 0, 0);
  write_thread(root, 11, "loader 1", 200, 1'000'000'000, 10);
  write_thread(root, 12, "loader 2", 300, 2'000'000'000, 20);
  write_thread(root, 13, "asleep", 50, 0, 5);
  ThreadWatch watch(root / "proc/self");
  write_thread(root, 10, "stoker", 200, 0, 0);
  write_thread(root, 11, "loader 1", 210, 1'500'000'000, 14, 'D');
  std::filesystem::remove_all(root / "proc/self/task/12");          // it ended
  write_thread(root, 14, "loader 3", 30, 250'000'000, 6, 'D');      // it began
  std::filesystem::create_directories(root / "proc/self/task/15");  // it vanished while it was read
  Figures figures;
  watch.report(2, figures);
  const auto value = by_name(figures);
  EXPECT_DOUBLE_EQ(value.at("threads.main.cpu_cores"), 0.1 / 2);
  EXPECT_DOUBLE_EQ(value.at("threads.loader.cpu_cores"), (0.010 + 0.030) / 2);
  EXPECT_DOUBLE_EQ(value.at("threads.loader.waiting_cores"), 0.75 / 2);
  EXPECT_DOUBLE_EQ(value.at("threads.loader.switches_per_second"), (4 + 6) / 2.0);
  EXPECT_DOUBLE_EQ(value.at("threads.loader.preemptions_per_second"), (8 + 12) / 2.0);
  EXPECT_EQ(value.at("threads.loader.count"), 2);
  EXPECT_EQ(value.at("process.blocked_threads"), 2);
  EXPECT_FALSE(value.contains("threads.asleep.count"));
}

TEST(MonitorThreads, WithoutSchedstatWaitingIsMissing) {
  const TempFolder root;
  root.write("proc/self/stat", stat("10", "stoker"));
  root.write("proc/self/task/10/stat", stat("10", "stoker", 'R', 100));
  ThreadWatch watch(root / "proc/self");
  root.write("proc/self/task/10/stat", stat("10", "stoker", 'R', 200));
  root.write("proc/self/task/10/schedstat", "0 0 0\n");
  Figures figures;
  watch.report(1, figures);
  const auto value = by_name(figures);
  EXPECT_GT(value.at("threads.main.cpu_cores"), 0);
  EXPECT_FALSE(value.contains("threads.main.waiting_cores"));
  EXPECT_FALSE(value.contains("threads.main.switches_per_second"));
}

TEST(MonitorThreads, AThreadOfThisProcessWithABadNameIsSeen) {
  ThreadWatch watch("/proc/self");
  std::jthread busy([](const std::stop_token& stopping) {
    ::prctl(PR_SET_NAME, "a ) R\n(b");
    while (!stopping.stop_requested()) {
    }
  });
  std::map<std::string, double> value;
  for (int i = 0; i < 200 && !value.contains("threads.a___R__b.cpu_cores"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    Figures figures;
    watch.report(0.02, figures);
    value = by_name(figures);
  }
  EXPECT_TRUE(value.contains("threads.a___R__b.cpu_cores"));
}

TEST(MonitorGroups, QuotaOfV2) {
  const TempFolder root;
  root.write("proc/self/cgroup", "0::/jobs/one\n");
  root.write("sys/fs/cgroup/jobs/one/cpu.max", "150000 100000\n");
  root.write("sys/fs/cgroup/jobs/one/cpu.stat",
             "usage_usec 9\nnr_periods 100\nnr_throttled 10\nthrottled_usec 5000000\n");
  root.write("sys/fs/cgroup/jobs/cpu.max", "max 100000\n");
  root.write("sys/fs/cgroup/jobs/memory.max", "1000000\n");
  root.write("sys/fs/cgroup/jobs/memory.current", "400000\n");
  root.write("sys/fs/cgroup/jobs/one/cpu.pressure", "some avg10=1.0 avg60=0 avg300=0 total=1000000\nfull total=7\n");
  GroupWatch watch(root.path());
  root.write("sys/fs/cgroup/jobs/one/cpu.stat",
             "usage_usec 9\nnr_periods 120\nnr_throttled 15\nthrottled_usec 6000000\n");
  root.write("sys/fs/cgroup/jobs/one/cpu.pressure", "some avg10=1.0 avg60=0 avg300=0 total=1500000\nfull total=7\n");
  Figures figures;
  watch.report(2, figures);
  EXPECT_EQ(by_name(figures), (std::map<std::string, double>{{"cgroup.cpu_limit_cores", 1.5},
                                                             {"cgroup.throttled_share", 0.25},
                                                             {"cgroup.throttled_cores", 0.5},
                                                             {"cgroup.memory_bytes", 400000},
                                                             {"cgroup.memory_limit_bytes", 1000000},
                                                             {"cgroup.cpu_pressure_share", 0.25}}));
}

TEST(MonitorGroups, QuotaOfV1AndPressureOfTheMachine) {
  const TempFolder root;
  root.write("proc/self/cgroup", "4:memory:/a\n1:cpu,cpuacct:/a\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.stat", "nr_periods 10\nnr_throttled 1\nthrottled_time 1000000000\n");
  root.write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");  // no limit
  root.write("proc/pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
  root.write("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
  GroupWatch watch(root.path());
  root.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.stat", "nr_periods 20\nnr_throttled 6\nthrottled_time 3000000000\n");
  root.write("proc/pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=300000\n");
  root.write("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1100000\n");
  Figures figures;
  watch.report(1, figures);
  EXPECT_EQ(by_name(figures), (std::map<std::string, double>{{"cgroup.cpu_limit_cores", 0.5},
                                                             {"cgroup.throttled_share", 0.5},
                                                             {"cgroup.throttled_cores", 2},
                                                             {"machine.io_pressure_share", 0.3},
                                                             {"machine.cpu_pressure_share", 1}}));  // 1.1 s
}

TEST(MonitorGroups, WithoutGroupsNothingIsReported) {
  const TempFolder root;
  GroupWatch watch(root.path());
  Figures figures;
  watch.report(1, figures);
  EXPECT_TRUE(figures.take().empty());
}

TEST(MonitorMachine, CoresAndTrafficGrow) {
  const TempFolder root;
  const std::string lo = "    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0\n", head = "Inter-|   Receive\n face |bytes\n";
  root.write("proc/stat", "cpu  100 0 50 900 10 0 0 5 0 0\ncpu0 1 2 3\n");
  root.write("proc/self/net/dev", head + lo + "  eth0: 1000 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n");
  root.write("proc/meminfo", "MemTotal: 2000 kB\nMemAvailable:  1000 kB\n");
  MachineWatch watch(root.path());
  root.write("proc/stat", "cpu  200 0 100 1000 10 0 0 15 0 0\ncpu0 1 2 3\n");
  root.write("proc/self/net/dev", head + lo + "  eth0: 5000 1 0 0 0 0 0 0 700 1 0 0 0 0 0 0\n");
  Figures figures;
  watch.report(2, figures);
  EXPECT_EQ(by_name(figures), (std::map<std::string, double>{{"machine.busy_cores", 150 * tick() / 2},
                                                             {"machine.stolen_cores", 10 * tick() / 2},
                                                             {"machine.received_bytes_per_second", 2000},
                                                             {"machine.sent_bytes_per_second", 100},
                                                             {"machine.available_bytes", 1000 * 1024}}));
  const TempFolder empty;
  MachineWatch none(empty.path());
  none.report(1, figures);
  EXPECT_TRUE(figures.take().empty());
}

TEST(MonitorPitfalls, AreSaidWhereTheyOccur) {
  EXPECT_TRUE(pitfalls({.affinity = 8, .quota = 0, .shared_bytes = std::int64_t{8} << 30}).empty());
  EXPECT_TRUE(pitfalls({.affinity = 2, .quota = 2}).empty());
  EXPECT_THAT(pitfalls({.affinity = 8, .quota = 1.5}), ElementsAre(HasSubstr("allows 1.5 cores, but nproc shows 8")));
  EXPECT_THAT(pitfalls({.shared_bytes = 64 << 20}), ElementsAre(HasSubstr("/dev/shm has 64 MiB")));
  EXPECT_THAT(pitfalls({.wsl = true, .divided_gpus = {"NVIDIA A100"}}),
              ElementsAre(HasSubstr("this is WSL"), HasSubstr("NVIDIA A100 is divided into instances (MIG)")));
}

TEST(MonitorPitfalls, AreFoundInFiles) {
  const TempFolder root;
  root.write("proc/version", "Linux version 5.15.90.1-microsoft-standard-WSL2\n");
  root.write("proc/self/cgroup", "0::/\n");
  root.write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  const Surroundings around = surroundings(root.path());
  EXPECT_TRUE(around.wsl);
  EXPECT_DOUBLE_EQ(around.quota, 0.5);
  EXPECT_EQ(around.shared_bytes, std::nullopt);
  EXPECT_FALSE(surroundings().wsl);
  EXPECT_TRUE(filesystem_bytes("/").has_value());
}

}  // namespace
}  // namespace stoker::observe
