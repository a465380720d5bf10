// SPDX-License-Identifier: Apache-2.0
// The screen of `stoker top` from made-up machines and run folders, at several sizes; the tail of a log that grows.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cmath>
#include <limits>

#include "stoker/study/top/run_tail.h"
#include "stoker/study/top/screen.h"
#include "stoker/study/top/watch.h"
#include "support/fake_nvml.h"
#include "support/temp_folder.h"

namespace stoker::study {
namespace {

using stoker::testing::fake_nvml;
using stoker::testing::TempFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kStarted =
    R"({"event":"run_started","title":"cnn on fashion, cpu","scalars":["loss"],"last_step":500})"
    "\n";

std::string step(int number, double loss) {
  return R"({"event":"step","epoch":0,"step":)" + std::to_string(number) +
         R"(,"samples":32,"seconds":0.016,"data_wait":0.001,"lr":0.1,"scalars":{"loss":)" + std::to_string(loss) +
         "}}\n";
}

const char* const kMonitor =
    R"({"event":"monitor","version":1,"time":9,"step":2,"seconds":1,"figures":{"threads.main.cpu_cores":0.97,)"
    R"("threads.loader.cpu_cores":0.5,"threads.main.waiting_cores":0.02,"process.asked_bytes_per_second":2097152,)"
    R"("process.read_bytes_per_second":0}})"
    "\n";
const char* const kAnatomy =
    R"({"event":"anatomy","version":1,"time":9,"step":2,"steps":2,"seconds":2,"phases":[{"name":"forward","seconds":1.2},)"
    R"({"name":"backward","seconds":0.8}],"marks":[]})"
    "\n";

int columns(const std::string& text) {
  return static_cast<int>(std::ranges::count_if(text, [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

std::string text_of(const std::vector<ScreenLine>& lines) {
  std::string text;
  for (const ScreenLine& line : lines) {
    text += line.text + "\n";
  }
  return text;
}

TEST(RunTail, ReadsWhatIsNew) {
  const TempFolder folder;
  RunTail tail(folder.path());
  EXPECT_EQ(tail.look().step, 0);  // no file yet
  folder.write("metrics.jsonl", kStarted + step(1, 2.5) + R"({"event":"step","st)");
  EXPECT_EQ(tail.look().title, "cnn on fashion, cpu");
  EXPECT_EQ(tail.look().step, 1);
  EXPECT_EQ(tail.look().last_step, 500);
  folder.write("metrics.jsonl", kStarted + step(1, 2.5) + step(2, 1.5) + kMonitor + kAnatomy + "not json\n[1]\n");
  const RunState& state = tail.look();
  EXPECT_EQ(state.step, 2);
  EXPECT_EQ(state.loss, 1.5);
  EXPECT_EQ(state.losses.size(), 2U);
  EXPECT_DOUBLE_EQ(state.samples, 2000);
  EXPECT_DOUBLE_EQ(state.monitor.at("threads.main.cpu_cores"), 0.97);
  ASSERT_EQ(state.phases.size(), 2U);
  EXPECT_EQ(tail.look().losses.size(), 2U) << "nothing is read twice";
  folder.write("metrics.jsonl", kStarted);  // begun again
  EXPECT_EQ(tail.look().step, 0);
}

// Threads are read more rarely where that costs much.
TEST(RunTail, KeepsGroupsThatARecordLeavesOut) {
  const TempFolder folder;
  RunTail tail(folder.path());
  const char* const later =
      R"({"event":"monitor","version":1,"time":10,"step":3,"seconds":1,"figures":{"process.read_bytes_per_second":7}})"
      "\n";
  folder.write("metrics.jsonl", std::string(kStarted) + kMonitor + later);
  const RunState& state = tail.look();
  EXPECT_DOUBLE_EQ(state.monitor.at("threads.loader.cpu_cores"), 0.5);
  EXPECT_DOUBLE_EQ(state.monitor.at("process.read_bytes_per_second"), 7);
  EXPECT_FALSE(state.monitor.contains("process.asked_bytes_per_second"));
}

TEST(RunTail, OfALongLogOnlyTheEndIsRead) {
  const TempFolder folder;
  std::string text = kStarted;
  for (int i = 1; i <= 20'000; ++i) {
    text += step(i, 1);
  }
  ASSERT_GT(text.size(), std::size_t{2} << 20);
  folder.write("metrics.jsonl", text);
  RunTail tail(folder.path());
  EXPECT_EQ(tail.look().step, 20'000);
  EXPECT_EQ(tail.look().title, "cnn on fashion, cpu");
}

TEST(RunTail, AFifoDoesNotBlock) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "metrics.jsonl").c_str(), 0600), 0);
  RunTail tail(folder.path());
  EXPECT_EQ(tail.look().step, 0);
}

TEST(RunTail, AbsurdNumbersAreNone) {
  const TempFolder folder;
  folder.write("metrics.jsonl", R"({"event":"run_started","title":"a","last_step":1e300})"
                                "\n"
                                R"({"event":"step","step":-1e300,"samples":32,"seconds":0.1})"
                                "\n");
  RunTail tail(folder.path());
  EXPECT_EQ(tail.look().last_step, 0);
  EXPECT_EQ(tail.look().step, 0);
  EXPECT_EQ(tail.look().title, "a");
}

TEST(TopScreen, BarsHaveEightHeights) {
  EXPECT_EQ(sparkline({0, 0.5, 1}, 10, 1), "▁▅█");
  EXPECT_EQ(sparkline({1, 2, 4}, 2), "▅█");  // the last two
  EXPECT_EQ(sparkline({0, 0}, 5), "▁▁");
  EXPECT_EQ(sparkline({1, std::nan(""), 9}, 5, 1), "█!█");
  EXPECT_EQ(sparkline({}, 5), "");
  EXPECT_EQ(sparkline({1}, -3), "");
}

class Screen : public ::testing::Test {
 protected:
  Screen() {
    root.write("proc/stat", "cpu  100 0 50 900 10 0 0 5 0 0\n");
    root.write("proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable: 25165824 kB\n");
    root.write("proc/uptime", "500.0 3.0\n");
    write_process(41, 300);
    root.write("run/metrics.jsonl", kStarted + step(1, 2.5) + step(2, 1.5) + kMonitor + kAnatomy);
  }
  void write_process(int pid, int ticks) {
    const std::string folder = "proc/" + std::to_string(pid) + "/";
    root.write(folder + "stat", std::to_string(pid) + " (python3) R 1 5 5 0 -1 4194304 0 0 0 0 " +
                                    std::to_string(ticks) + " 0 0 0 20 0 9 0 100 3133440 500000 0 1 1 1\n");
    root.write(folder + "cmdline", std::string("python3\0train.py --name \x1b[31m", 26));
  }
  TempFolder root;
};

TEST_F(Screen, ShowsMachineProcessesAndARun) {
  MachineView view({.nvml = nullptr, .root = root.path(), .runs = {root / "run"}});
  root.write("proc/stat", "cpu  200 0 50 900 10 0 0 5 0 0\n");
  write_process(41, 350);
  write_process(42, 9999);  // began meanwhile
  const std::string text = text_of(top_screen(view.look(1), 120, 40));
  EXPECT_THAT(text, HasSubstr("1.00 in use"));
  EXPECT_THAT(text, HasSubstr("8.0 of 32.0 GiB in use"));
  EXPECT_THAT(text, HasSubstr("no NVIDIA driver was found"));
  EXPECT_THAT(text, HasSubstr("2 of 500, 2000 samples/s"));
  EXPECT_THAT(text, HasSubstr("loss 1.5"));
  EXPECT_THAT(text, HasSubstr("forward 60 %, backward 40 %"));
  EXPECT_THAT(text, HasSubstr("main 0.97, loader 0.50"));
  EXPECT_THAT(text, HasSubstr("2.0 MiB/s asked for, 0.0 from disks; the main thread waits 2 % of the time for a core"));
  EXPECT_THAT(text, HasSubstr("0.50    1.9 GiB  python3 train.py"));
  EXPECT_THAT(text, HasSubstr("     ?    1.9 GiB  python3")) << "a process that began has no rate yet";
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST_F(Screen, ARunIsShownOnce) {
  std::filesystem::create_directories(root / "proc/41/fd");
  std::filesystem::create_symlink(root / "run/metrics.jsonl", root / "proc/41/fd/3");
  root.write("proc/41/fdinfo/3", "pos:\t9\nflags:\t02102001\n");
  std::filesystem::create_symlink("/", root / "proc/41/root");
  root.write("run/plan.json", "{}");
  MachineView found({.nvml = nullptr, .root = root.path()});
  ASSERT_EQ(found.look(1).runs.size(), 1U);
  std::filesystem::create_symlink(root / "run", root / "link");
  MachineView view({.nvml = nullptr,
                    .root = root.path(),
                    .runs = {root / "run", root / "link", root / "run/", root / "run/../run"}});
  ASSERT_EQ(view.look(1).runs.size(), 1U);
  EXPECT_EQ(view.look(1).runs[0].second.step, 2);
}

// Without a loss or a period yet it has few lines, and takes no room from those behind it.
TEST_F(Screen, ShowsARunThatHasJustBegun) {
  root.write("begun/metrics.jsonl", kStarted);
  MachineView view({.nvml = nullptr, .root = root.path(), .runs = {root / "begun", root / "run"}});
  const std::string text = text_of(top_screen(view.look(1), 120, 40));
  EXPECT_THAT(text, AllOf(HasSubstr((root / "begun").string()), HasSubstr((root / "run").string())));
  EXPECT_THAT(text, Not(HasSubstr("not shown")));
  const std::string small = text_of(top_screen(view.look(1), 120, 12));
  EXPECT_THAT(small,
              AllOf(HasSubstr((root / "begun").string()), HasSubstr("1 run not shown: the screen is too small")));
}

TEST_F(Screen, ShowsGpus) {
  const device::Nvml nvml(fake_nvml("whole"));
  ::setenv("FAKE_NVML_PID", "41", 1);
  std::filesystem::create_directories(root / "proc/41/fd");
  std::filesystem::create_symlink("/dev/nvidia0", root / "proc/41/fd/3");
  MachineView view({.nvml = &nvml, .root = root.path()});
  const std::string text = text_of(top_screen(view.look(1), 120, 40));
  EXPECT_THAT(text, HasSubstr("GPU 0    75 % busy, SMs  10 %"));
  EXPECT_THAT(text, HasSubstr("NVIDIA Fake 80GB  30.0 of 80 GiB  412 W  1410 MHz  64 °C  slowed down"));
  EXPECT_THAT(text, HasSubstr("GPU 1     ?  busy")) << "missing, not 0";
  EXPECT_THAT(text, HasSubstr("0.00    1.9 GiB    1.0 GiB  python3 train.py"));
  ::unsetenv("FAKE_NVML_PID");
}

TEST_F(Screen, FitsEverySize) {
  const device::Nvml nvml(fake_nvml("whole"));
  for (int i = 100; i < 160; ++i) {
    write_process(i, i);
  }
  MachineView view({.nvml = &nvml, .root = root.path(), .runs = {root / "run", root / "other"}});
  const Watched& watched = view.look(1);
  for (const auto& [width, height] :
       {std::pair(80, 24), {200, 50}, {20, 5}, {100, 12}, {40, 1}, {80, 0}, {80, -4}, {0, 24}}) {
    const auto lines = top_screen(watched, width, height);
    EXPECT_EQ(static_cast<int>(lines.size()), std::max(height, 0)) << width << "x" << height;
    for (const ScreenLine& line : lines) {
      EXPECT_LE(columns(line.text), std::max(width, 20)) << line.text;
    }
  }
}

}  // namespace
}  // namespace stoker::study
