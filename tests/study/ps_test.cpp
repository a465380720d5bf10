// SPDX-License-Identifier: Apache-2.0
// Who holds GPU memory, in made-up roots of /proc with NVML's stand-in, and the texts about it.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "stoker/base/cut_text.h"
#include "stoker/study/ps/holders.h"
#include "stoker/study/ps/ps_text.h"
#include "support/fake_nvml.h"
#include "support/temp_folder.h"

namespace stoker::study {
namespace {

namespace fs = std::filesystem;
using stoker::testing::fake_nvml;
using stoker::testing::TempFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Made {
  std::string name = "python3", command = "python3 train.py", cgroup = "0::/\n";
  int parent = 50, session = 5;
  char state = 'S';
  std::vector<std::string> files = {};  // that it has open
  bool writes = true;                   // to them
  std::string maps = "";
};

void make(const TempFolder& root, int pid, const Made& made) {
  const std::string folder = "proc/" + std::to_string(pid) + "/";
  root.write(folder + "stat", std::to_string(pid) + " (" + made.name + ") " + made.state + " " +
                                  std::to_string(made.parent) + " 5 " + std::to_string(made.session) +
                                  " 0 -1 4194304 1000 0 20 0 30000 7000 0 0 20 0 9 0 100 3133440 5000 0 1 1 1\n");
  std::string arguments = made.command;
  std::ranges::replace(arguments, ' ', '\0');
  root.write(folder + "cmdline", arguments);
  root.write(folder + "cgroup", made.cgroup);
  root.write(folder + "maps", made.maps);
  fs::remove_all(root / (folder + "fd"));
  fs::create_directories(root / (folder + "fd"));
  for (std::size_t i = 0; i < made.files.size(); ++i) {
    fs::create_symlink(made.files[i], root / (folder + "fd/" + std::to_string(i)));
    root.write(folder + "fdinfo/" + std::to_string(i),
               made.writes ? "pos:\t0\nflags:\t02102001\nmnt_id:\t29\n" : "pos:\t0\nflags:\t02100000\nmnt_id:\t29\n");
  }
  if (std::error_code error; !fs::is_symlink(root / (folder + "root"), error)) {
    fs::create_symlink(root.path(), root / (folder + "root"));
  }
}

class Root : public ::testing::Test {
 protected:
  Root() {
    root.write("proc/uptime", "7201.00 1000.0\n");
    root.write("proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable: 16777216 kB\n");
    root.write("proc/cpuinfo", "");
  }
  Holders found() { return find_holders({.nvml = nvml.get(), .root = root.path()}); }
  static const Holder& of(const std::vector<Holder>& all, int pid) {
    return *std::ranges::find(all, pid, &Holder::pid);
  }

  TempFolder root;
  std::unique_ptr<device::Nvml> nvml = std::make_unique<device::Nvml>(fake_nvml("whole"));
};

TEST_F(Root, HoldersHaveCommandUserAgeAndContainer) {
  const std::string id(64, 'a');
  make(root, 4711, {.cgroup = "12:cpu:/\n0::/system.slice/docker-" + id + ".scope\n", .files = {"/dev/nvidia0"}});
  make(root, 900002, {.state = 'Z'});
  make(root, 900003, {.name = "a b) Z 1 (", .command = "", .files = {"/dev/nvidiactl"}});
  make(root, 900005, {.files = {"/dev/null"}});  // another process than the host's 900005
  const Holders holders = found();
  EXPECT_EQ(holders.no_gpu, "");
  ASSERT_EQ(holders.gpus.size(), 2U);
  ASSERT_EQ(holders.of_gpus.size(), 70U);
  const Holder& first = of(holders.of_gpus, 4711);
  EXPECT_EQ(first.bytes, 1 << 30);
  ASSERT_TRUE(first.process.has_value());
  EXPECT_EQ(first.process->command, "python3 train.py");
  EXPECT_EQ(first.process->container, "docker aaaaaaaaaaaa");
  EXPECT_NEAR(first.process->age_seconds, 7200, 1);
  EXPECT_EQ(first.remark, "");
  EXPECT_EQ(of(holders.of_gpus, 900002).remark, "dead; its parent 50 has not collected it");
  EXPECT_EQ(of(holders.of_gpus, 900003).process->command, "[a b) Z 1 (]");
  EXPECT_THAT(of(holders.of_gpus, 900004).remark, HasSubstr("not visible from here"));
  EXPECT_FALSE(of(holders.of_gpus, 900005).process.has_value());

  const std::string text = holders_text(holders);
  EXPECT_THAT(text, HasSubstr("GPU 0: NVIDIA Fake 80GB, 30.0 GiB of 80.0 GiB used, busy 75 % of the time"));
  EXPECT_THAT(text, HasSubstr("in docker aaaaaaaaaaaa"));
  EXPECT_THAT(text, HasSubstr("2 h 0 min"));
  EXPECT_THAT(text, HasSubstr("?  not visible from here"));
  EXPECT_THAT(text, HasSubstr("is divided into instances (MIG)"));  // the second GPU
  const auto json = nlohmann::json::parse(holders_json(holders));
  EXPECT_EQ(json["holders"].size(), 70U);
  EXPECT_FALSE(json["gpus"][1].contains("busy_share")) << "missing, not 0";
}

TEST_F(Root, LeftoversAreNamed) {
  make(root, 10, {.name = "torch_shm_manag", .command = "/site/torch/bin/torch_shm_manager", .parent = 1});
  make(root, 11, {.command = "python3 -c from multiprocessing.spawn import spawn_main", .parent = 1});
  make(root, 12, {.command = "python3 -c from multiprocessing.spawn import spawn_main", .parent = 50});
  make(root, 13, {.files = {"/dev/nvidiactl", "/dev/nvidia1"}});
  root.write("dev/shm/torch_11_0", std::string(100'000, 'x'));
  root.write("dev/shm/torch_mapped", std::string(10'000, 'x'));
  root.write("dev/shm/torch_open", "x");
  make(root, 14, {.files = {"/dev/shm/torch_open"}, .maps = "7f0-7f1 rw-s 0000 00:1a 9   /dev/shm/torch_mapped\n"});
  const Holders holders = found();
  ASSERT_EQ(holders.leftovers.size(), 3U);
  EXPECT_EQ(of(holders.leftovers, 10).remark, "left over: a worker whose parent has ended");
  EXPECT_EQ(of(holders.leftovers, 11).remark, "left over: a worker whose parent has ended");
  EXPECT_THAT(of(holders.leftovers, 13).remark, HasSubstr("the driver reports no memory for it"));
  ASSERT_EQ(holders.shared.size(), 3U);
  EXPECT_EQ(holders.shared[0].path, "/dev/shm/torch_11_0");
  EXPECT_TRUE(holders.shared[0].left_over);
  EXPECT_EQ(holders.shared[1].pids, std::vector{14});  // mapped and closed
  EXPECT_EQ(holders.shared[2].pids, std::vector{14});
  EXPECT_THAT(holders_text(holders), HasSubstr("left over: nobody has the file open"));
}

// NVML lists 900001 to 900069 as holders.
TEST_F(Root, HoldersThatNobodyStartedAreOrphans) {
  const std::vector<std::string> gpu = {"/dev/nvidia0"};
  make(root, 1, {.name = "systemd", .command = "/sbin/init", .parent = 0, .session = 1});
  make(root, 30, {.name = "tini", .command = "tini -- python3 train.py", .parent = 2, .session = 30});
  make(root, 40, {.name = "bash", .command = "bash", .parent = 2, .session = 40});
  make(root, 900001, {.parent = 1, .session = 77, .files = gpu});      // its shell has ended
  make(root, 900002, {.parent = 1, .session = 900002, .files = gpu});  // a service
  make(root, 900003, {.parent = 30, .session = 30, .files = gpu});     // the container's own program
  make(root, 900004, {.parent = 30, .session = 99, .files = gpu});     // its docker exec has ended
  make(root, 900005, {.parent = 40, .session = 40, .files = gpu});     // of a shell that lives
  make(root, 50, {.parent = 1, .session = 77, .files = {"/dev/nvidiactl"}});
  make(root, 51, {.command = "python3 -c from multiprocessing.spawn import spawn_main", .parent = 30, .session = 30});
  const Holders holders = found();
  for (const int pid : {900001, 900004}) {
    EXPECT_THAT(of(holders.of_gpus, pid).remark, HasSubstr("orphaned: the program that started it has ended")) << pid;
  }
  for (const int pid : {900002, 900003, 900005}) {
    EXPECT_EQ(of(holders.of_gpus, pid).remark, "") << pid;
  }
  EXPECT_THAT(of(holders.leftovers, 50).remark, HasSubstr("orphaned"));
  EXPECT_THAT(of(holders.leftovers, 51).remark, HasSubstr("left over: a worker"));
}

TEST_F(Root, InAContainerTheFirstProcessMayBeTheProgram) {
  make(root, 1, {.name = "pt_main_thread", .command = "/usr/bin/python3 train.py", .parent = 0, .session = 1});
  const Made worker{
      .command = "python3 -c from multiprocessing.spawn import spawn_main", .parent = 1, .session = 1, .files = {}};
  make(root, 11, worker);
  make(root, 900001, {.parent = 1, .session = 1, .files = {"/dev/nvidia0"}});
  Holders holders = found();
  EXPECT_TRUE(holders.leftovers.empty());
  EXPECT_EQ(of(holders.of_gpus, 900001).remark, "");
  make(root, 1, {.name = "bash", .command = "bash run.sh", .parent = 0, .session = 1});
  holders = found();
  EXPECT_EQ(of(holders.leftovers, 11).remark, "left over: a worker whose parent has ended");
  EXPECT_EQ(of(holders.of_gpus, 900001).remark, "") << "its script goes on";
}

TEST_F(Root, NotebooksKeepGpuMemory) {
  const std::vector<std::string> gpu = {"/dev/nvidia0"};
  make(root, 60, {.command = "python3 -m ipykernel_launcher -f k.json", .files = gpu});
  make(root, 61, {.command = "python3 -m ipykernel_launcher -f k.json"});  // without a GPU
  make(root, 62, {.command = "R --slave", .parent = 59, .files = gpu});
  make(root, 63, {.command = "python3 train.py", .parent = 62, .files = gpu});
  root.write("proc/62/environ", std::string("A=1\0JPY_PARENT_PID=59\0B=2", 24));
  root.write("proc/63/environ", std::string("JPY_PARENT_PID=59\0", 18));
  std::vector<std::string> said;
  std::ranges::copy_if(found().pitfalls, std::back_inserter(said),
                       [](const std::string& text) { return text.find("the kernel of a notebook") != text.npos; });
  EXPECT_THAT(said, ElementsAre(HasSubstr("process 60 is"), HasSubstr("process 62 is")));
}

TEST_F(Root, AmountsAndCountsAreReadable) {
  root.write("dev/shm/one", "x");
  const std::string text = holders_text(found());
  EXPECT_THAT(text, HasSubstr("/dev/shm: 1 file, 4.00 KiB"));
  EXPECT_THAT(text, Not(HasSubstr(" 0.0 GiB")));
}

TEST_F(Root, WithoutADriverProcessesAndRunsAreStillShown) {
  nvml = std::make_unique<device::Nvml>("/nowhere/libnvidia-ml.so.1");
  root.write("runs/a b/plan.json", "{}");
  make(root, 20, {.name = "my_program", .command = "./my_program data", .files = {"/runs/a b/metrics.jsonl"}});
  make(root, 21, {.name = "stoker", .files = {"/runs/a b/metrics.jsonl"}, .writes = false});  // only reads it
  make(root, 24, {.files = {"/other/metrics.jsonl"}});                                        // not Stoker's
  make(root, 22, {.command = "python3 \x1b[31m\xff"});
  fs::create_directories(root / "proc/23");  // it vanished while it was read
  const Holders holders = found();
  EXPECT_TRUE(holders.gpus.empty());
  ASSERT_EQ(holders.runs.size(), 1U);
  EXPECT_EQ(holders.runs[0].pid, 20);
  EXPECT_EQ(holders.runs[0].process->run_folder, "/runs/a b");
  const std::string text = holders_text(holders);
  EXPECT_THAT(text, HasSubstr("GPU: no NVIDIA driver was found"));
  EXPECT_THAT(text, HasSubstr("/runs/a b"));
  EXPECT_THAT(text, HasSubstr("16.0 GiB of 32.0 GiB of memory free"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_EQ(nlohmann::json::parse(holders_json(holders))["no_gpu"], holders.no_gpu);
}

TEST(Containers, AreKnownByTheirPaths) {
  const std::string id = "0123456789abcdef" + std::string(48, '0');
  EXPECT_EQ(observe::container_of("0::/\n"), "");
  EXPECT_EQ(observe::container_of("0::/user.slice/user-1000.slice/session-3.scope\n"), "");
  EXPECT_EQ(observe::container_of("4:memory:/docker/" + id + "\n"), "container 0123456789ab");
  EXPECT_EQ(observe::container_of("0::/machine.slice/libpod-" + id + ".scope\n"), "podman 0123456789ab");
  EXPECT_EQ(observe::container_of(
                "0::/kubepods.slice/kubepods-pod1b2c3d4e_aaaa_bbbb_cccc_ddddeeeeffff.slice/cri-containerd-" + id +
                ".scope\n"),
            "pod 1b2c3d4e_aaaa, containerd 0123456789ab");
}

TEST(PsText, AgesAndCuts) {
  EXPECT_EQ(age_text(8), "8 s");
  EXPECT_EQ(age_text(3 * 60), "3 min");
  EXPECT_EQ(age_text(2 * 3600 + 65), "2 h 1 min");
  EXPECT_EQ(age_text(86400 * 3 + 7300), "3 d 2 h");
  EXPECT_EQ(cut_text("abc", 3), "abc");
  EXPECT_EQ(cut_text("abcd", 3), "ab…");
  EXPECT_EQ(cut_text("größer", 3), "gr…");
}

}  // namespace
}  // namespace stoker::study
