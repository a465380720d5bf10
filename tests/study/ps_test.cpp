// SPDX-License-Identifier: Apache-2.0
// Who holds GPU memory, in made-up roots of /proc with NVML's stand-in; and the end of a chosen holder, with real child
// processes whose "device" is a file in a temp folder.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/study/ps/free.h"
#include "stoker/study/ps/holders.h"
#include "stoker/study/ps/ps_text.h"
#include "support/fake_nvml.h"
#include "support/temp_folder.h"

namespace stoker::study {
namespace {

namespace fs = std::filesystem;
using stoker::testing::fake_nvml;
using stoker::testing::TempFolder;
using ::testing::HasSubstr;
using ::testing::Not;

struct Made {
  std::string name = "python3", command = "python3 train.py", cgroup = "0::/\n";
  int parent = 50;
  char state = 'S';
  std::vector<std::string> files = {};  // that it has open
  std::string maps = "";
};

void make(const TempFolder& root, int pid, const Made& made) {
  const std::string folder = "proc/" + std::to_string(pid) + "/";
  root.write(folder + "stat", std::to_string(pid) + " (" + made.name + ") " + made.state + " " +
                                  std::to_string(made.parent) +
                                  " 5 5 0 -1 4194304 1000 0 20 0 30000 7000 0 0 20 0 9 0 100 3133440 5000 0 1 1 1\n");
  std::string arguments = made.command;
  std::ranges::replace(arguments, ' ', '\0');
  root.write(folder + "cmdline", arguments);
  root.write(folder + "cgroup", made.cgroup);
  root.write(folder + "maps", made.maps);
  fs::create_directories(root / (folder + "fd"));
  for (std::size_t i = 0; i < made.files.size(); ++i) {
    fs::create_symlink(made.files[i], root / (folder + "fd/" + std::to_string(i)));
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
  EXPECT_THAT(of(holders.leftovers, 13).remark, HasSubstr("the driver tells no memory"));
  ASSERT_EQ(holders.shared.size(), 3U);
  EXPECT_EQ(holders.shared[0].path, "/dev/shm/torch_11_0");
  EXPECT_TRUE(holders.shared[0].left_over);
  EXPECT_EQ(holders.shared[1].pids, std::vector{14});  // mapped and closed
  EXPECT_EQ(holders.shared[2].pids, std::vector{14});
  EXPECT_THAT(holders_text(holders), HasSubstr("left over: nobody has the file open"));
}

TEST_F(Root, WithoutADriverProcessesAndRunsAreStillShown) {
  nvml = std::make_unique<device::Nvml>("/nowhere/libnvidia-ml.so.1");
  make(root, 20, {.name = "stoker", .command = "stoker train data", .files = {"/runs/a b/metrics.jsonl"}});
  make(root, 21, {.name = "editor", .files = {"/runs/a b/metrics.jsonl"}});
  make(root, 22, {.command = "python3 \x1b[31m\xff"});
  fs::create_directories(root / "proc/23");  // it vanished while it was read
  const Holders holders = found();
  EXPECT_TRUE(holders.gpus.empty());
  ASSERT_EQ(holders.runs.size(), 1U);
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

// A child with a file open, that ends at SIGTERM or does not.
class Child {
 public:
  Child(const fs::path& device, bool stubborn) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const int file = ::open(device.c_str(), O_RDWR);
      ::signal(SIGTERM, stubborn ? SIG_IGN : SIG_DFL);
      static int kept = 0;
      kept = file;
      ::signal(SIGUSR1, [](int) { ::close(kept); });
      if (::write(ready[1], "x", 1) == 1) {
        while (true) {
          ::pause();
        }
      }
      ::_exit(1);
    }
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] int pid() const { return pid_; }
  [[nodiscard]] bool lives() const { return ::kill(pid_, 0) == 0 && ::waitpid(pid_, nullptr, WNOHANG) == 0; }
  // The signal that ended it; 0: it lives, or ended otherwise.
  int ended_by() {
    int status = 0;
    const bool ended = ::waitpid(pid_, &status, 0) == pid_;
    pid_ = ended ? -1 : pid_;
    return ended && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

 private:
  pid_t pid_ = -1;
};

class Free : public ::testing::Test {
 protected:
  Free() {
    folder.write("nvidia0", "");
    folder.write("other", "");
    options.devices = {(folder / "nvidia").native()};
    options.patience_seconds = 5;
  }
  std::string error(
      int pid, const std::function<bool(const std::string&)>& agree = [](const auto&) { return true; }) {
    try {
      free_gpu(pid, agree, options);
    } catch (const ConfigError& failure) {
      return failure.what();
    }
    return "";
  }
  TempFolder folder;
  FreeOptions options;
};

TEST_F(Free, EndsTheChosenOneAfterAYes) {
  Child child(folder / "nvidia0", false);
  std::string question;
  EXPECT_TRUE(free_gpu(
      child.pid(),
      [&](const std::string& text) {
        question = text;
        return true;
      },
      options));
  EXPECT_EQ(child.ended_by(), SIGTERM);
  EXPECT_THAT(question, HasSubstr("pid "));
  EXPECT_THAT(question, HasSubstr("nvidia0"));
}

TEST_F(Free, AStubbornOneIsKilled) {
  options.patience_seconds = 0.2;
  Child child(folder / "nvidia0", true);
  EXPECT_TRUE(free_gpu(
      child.pid(), [](const std::string&) { return true; }, options));
  EXPECT_EQ(child.ended_by(), SIGKILL);
}

TEST_F(Free, WithoutAYesNothingHappens) {
  const Child child(folder / "nvidia0", false);
  EXPECT_FALSE(free_gpu(
      child.pid(), [](const std::string&) { return false; }, options));
  EXPECT_TRUE(child.lives());
}

TEST_F(Free, AProcessWithoutADeviceIsLeftAlone) {
  const Child child(folder / "other", false);
  EXPECT_THAT(error(child.pid()), HasSubstr("has no GPU device open"));
  EXPECT_TRUE(child.lives());
  EXPECT_THAT(error(::getpid()), HasSubstr("this command"));
  EXPECT_THAT(error(1 << 22), HasSubstr("there is no process"));
}

TEST_F(Free, AProcessThatChangedSinceTheQuestionIsLeftAlone) {
  const Child child(folder / "nvidia0", false);
  const auto lets_go = [&](const std::string&) {  // of its device
    ::kill(child.pid(), SIGUSR1);
    for (int i = 0; i < 500 && !observe::read_process(child.pid(), options.devices)->open_files.empty(); ++i) {
      ::usleep(10'000);
    }
    return true;
  };
  EXPECT_THAT(error(child.pid(), lets_go), HasSubstr("has no GPU device open"));
  EXPECT_TRUE(child.lives());
}

TEST_F(Free, AnotherProcessWithTheSameNumberIsToldApart) {
  const Child child(folder / "nvidia0", false);
  const observe::ListedProcess before = observe::read_process(child.pid(), options.devices).value();
  EXPECT_TRUE(is_same_holder(before, before));
  observe::ListedProcess now = before;
  *now.times.start_seconds += 0.01;
  EXPECT_FALSE(is_same_holder(before, now));
  now = before;
  ++now.uid;
  EXPECT_FALSE(is_same_holder(before, now));
  now = before;
  now.open_files = {(folder / "nvidia1").native()};
  EXPECT_FALSE(is_same_holder(before, now));
}

TEST_F(Free, AProcessOfSomebodyElseIsLeftAlone) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root: a process of another user";
  }
  const Child child(folder / "nvidia0", false);
  ASSERT_EQ(::seteuid(65534), 0);
  const std::string said = error(child.pid());
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_THAT(said, HasSubstr("only they or root can end it"));
  EXPECT_TRUE(child.lives());
}

}  // namespace
}  // namespace stoker::study
