// SPDX-License-Identifier: Apache-2.0
// The monitor's records: their windows in made-up time, GPUs from the stand-in for NVML, and a real thread on this
// process.
#include "stoker/observe/monitor/monitor.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "stoker/base/clock.h"
#include "support/fake_nvml.h"
#include "support/temp_folder.h"

namespace stoker::observe {
namespace {

using stoker::testing::fake_nvml;
using stoker::testing::FakeNvmlMode;
using stoker::testing::TempFolder;

std::map<std::string, double> by_name(const core::Monitored& record) {
  std::map<std::string, double> result;
  for (const core::Figure& figure : record.figures) {
    EXPECT_TRUE(result.emplace(figure.name, figure.value).second) << figure.name << " twice";
  }
  return result;
}

// The first record of ticks that come every tenth of a second.
core::Monitored one_window(Sampler& sampler, double& now) {
  for (int i = 0; i < 200; ++i) {
    if (auto record = sampler.tick(now += kTickSeconds)) {
      return *record;
    }
  }
  ADD_FAILURE() << "no record in 20 s";
  return {};
}

TEST(Pace, AnExpensiveSourceIsReadRarely) {
  Pace pace(1, 0.001);  // a second, and a thousandth of a core
  EXPECT_TRUE(pace.due(0));
  pace.read(0, 0.0001);
  EXPECT_FALSE(pace.due(0.9));
  EXPECT_TRUE(pace.due(0.96));  // ticks are not exact
  pace.read(1, 0.005);
  EXPECT_FALSE(pace.due(5.9));
  EXPECT_TRUE(pace.due(6));
}

TEST(Sampler, ARecordPerSecondAndFewerInALongRun) {
  EXPECT_EQ(window_seconds(0), 1);
  EXPECT_EQ(window_seconds(3600), 1);
  EXPECT_EQ(window_seconds(2 * 3600), 2);
  EXPECT_EQ(window_seconds(1e6), 10);
  double now = 1000;
  Sampler sampler({}, now);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(one_window(sampler, now).seconds, 1, 1e-6);
  }
  now += 4 * 3600;
  static_cast<void>(sampler.tick(now));  // the window in which the machine slept
  EXPECT_NEAR(one_window(sampler, now).seconds, 4, 0.11);
}

TEST(Sampler, ExpensiveFiguresAreReadRarely) {
  double now = 0;
  Sampler sampler({}, now);
  int rare = 0;
  for (int i = 0; i < 20; ++i) {
    rare += static_cast<int>(by_name(one_window(sampler, now)).count("process.open_files"));
  }
  EXPECT_EQ(rare, 2);
}

TEST(Sampler, MissingFilesAreMissingFigures) {
  const TempFolder root;
  double now = 0;
  Sampler sampler({.root = root.path()}, now);
  const auto value = by_name(one_window(sampler, now));
  EXPECT_EQ(value, (std::map<std::string, double>{{"process.blocked_threads", 0}}));
}

TEST(Sampler, GpuFiguresOfAWindow) {
  const device::Nvml nvml(fake_nvml("whole"));
  double now = 0;
  Sampler sampler({.nvml = &nvml, .gpu_bus_id = "0000:3b:00.0"}, now);
  const auto value = by_name(one_window(sampler, now));
  EXPECT_DOUBLE_EQ(value.at("gpu0.busy_share"), 0.75);
  EXPECT_DOUBLE_EQ(value.at("gpu0.power_watts"), 412.5);
  EXPECT_DOUBLE_EQ(value.at("gpu0.energy_joules"), 400);
  EXPECT_DOUBLE_EQ(value.at("gpu0.sm_clock_hz"), 1410e6);
  EXPECT_DOUBLE_EQ(value.at("gpu0.sm_clock_limit_hz"), 1980e6);
  EXPECT_DOUBLE_EQ(value.at("gpu0.throttled_share"), 1);
  EXPECT_DOUBLE_EQ(value.at("gpu0.throttled.power_cap_share"), 1);
  EXPECT_FALSE(value.contains("gpu0.throttled.hardware_thermal_share"));
  EXPECT_DOUBLE_EQ(value.at("gpu0.pcie_generation"), 4);
  EXPECT_DOUBLE_EQ(value.at("gpu0.pcie_width_max"), 16);
  EXPECT_DOUBLE_EQ(value.at("gpu0.nvlinks"), 3);
  EXPECT_DOUBLE_EQ(value.at("gpu0.sm_busy_share"), 0.1);
  EXPECT_DOUBLE_EQ(value.at("gpu0.memory_bandwidth_share"), 0.55);
}

TEST(Sampler, ADividedGpuLacksWhatNvmlDoesNotTellPerSlice) {
  const device::Nvml nvml(fake_nvml("whole"));
  double now = 0;
  Sampler sampler({.nvml = &nvml, .gpu_bus_id = "00000000:D8:00.0"}, now);
  const auto value = by_name(one_window(sampler, now));
  EXPECT_FALSE(value.contains("gpu1.busy_share") || value.contains("gpu1.memory_used_bytes"));
  EXPECT_FALSE(value.contains("gpu1.sm_busy_share") || value.contains("gpu1.pcie_width"));
  EXPECT_DOUBLE_EQ(value.at("gpu1.power_watts"), 412.5);
  const auto said = sampler.pitfalls();
  EXPECT_TRUE(std::ranges::any_of(said, [](const auto& text) { return text.find("(MIG)") != text.npos; }));
}

TEST(Sampler, ANotebookAboveARunIsSaid) {
  const TempFolder root;
  const auto process = [&](const std::string& pid, int parent, const std::string& command) {
    root.write("proc/" + pid + "/stat", pid + " (x) S " + std::to_string(parent) + " 5 5 0 -1 0\n");
    root.write("proc/" + pid + "/cmdline", command);
  };
  process("self", 80, "stoker");
  process("80", 70, "bash");
  process("70", 60, std::string("python3\0-m\0ipykernel_launcher\0-f", 32));
  std::filesystem::create_directories(root / "proc/70/fd");
  const device::Nvml nvml(fake_nvml("whole"));
  const auto said = [&](const std::string& gpu) {
    const auto all = Sampler({.root = root.path(), .nvml = &nvml, .gpu_bus_id = gpu}, 0).pitfalls();
    return std::ranges::count_if(
        all, [](const std::string& text) { return text.find("process 70 is the kernel of a notebook") != text.npos; });
  };
  EXPECT_EQ(said("00000000:3B:00.0"), 0) << "the kernel uses no GPU";
  std::filesystem::create_symlink("/dev/nvidia0", root / "proc/70/fd/5");
  EXPECT_EQ(said("00000000:3B:00.0"), 1);
  EXPECT_EQ(said(""), 0) << "the run uses no GPU";
}

TEST(Sampler, AGpuThatFailsHasNoFigures) {
  const device::Nvml nvml(fake_nvml("whole"));
  double now = 0;
  Sampler sampler({.nvml = &nvml, .gpu_bus_id = "00000000:3B:00.0"}, now);
  const FakeNvmlMode mode("errors");
  for (const auto& [name, value] : by_name(one_window(sampler, now))) {
    EXPECT_TRUE(!name.starts_with("gpu") || name == "gpu0.power_limit_watts" || name == "gpu0.sm_clock_limit_hz" ||
                name == "gpu0.memory_bytes" || name == "gpu0.nvlinks")
        << name;
  }
}

class Records final : public core::EventEmitter {
 public:
  void emit(core::Event event) override {
    const std::lock_guard lock(mutex_);
    if (auto* record = std::get_if<core::Monitored>(&event)) {
      all_.push_back(std::move(*record));
    } else if (auto* finding = std::get_if<core::Finding>(&event)) {
      findings_.push_back(std::move(finding->text));
    }
  }
  std::vector<core::Monitored> all() {
    const std::lock_guard lock(mutex_);
    return all_;
  }
  // Findings that hold these words.
  int said(std::string_view words) {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(
        std::ranges::count_if(findings_, [&](const std::string& text) { return text.find(words) != text.npos; }));
  }

 private:
  std::mutex mutex_;
  std::vector<core::Monitored> all_;
  std::vector<std::string> findings_;
};

// Waits at most 30 s.
template <typename Condition>
bool comes_true(const Condition& condition) {
  for (int i = 0; i < 3000 && !condition(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return condition();
}

TEST(Monitor, WatchesThisProcessUntilItEnds) {
  Records records;
  const double begin = clock_s(CLOCK_REALTIME);
  {
    Monitor monitor(records, {.more = [] { return std::vector<core::Figure>{{"device.allocated_bytes", 12}}; }});
    monitor.at_step(7);
    const Stopwatch watch;
    while (records.all().empty() && watch.seconds() < 30) {  // busy, so that the process uses a core
    }
    EXPECT_TRUE(comes_true([&] { return monitor.cpu_seconds() > 0; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  const auto all = records.all();
  ASSERT_GE(all.size(), 2U) << "the last window is reported, too";
  double seconds = 0;
  for (const core::Monitored& record : all) {
    EXPECT_EQ(record.step, 7);
    seconds += record.seconds;
  }
  EXPECT_LE(all.back().time, clock_s(CLOCK_REALTIME));
  EXPECT_NEAR(all.back().time - begin, seconds, 0.5 + 0.2 * seconds) << "the windows follow each other";
  const auto value = by_name(all.front());
  EXPECT_GT(value.at("process.cpu_cores"), 0.05);
  EXPECT_GT(value.at("process.resident_bytes"), 1 << 20);
  EXPECT_EQ(value.at("device.allocated_bytes"), 12);
  EXPECT_TRUE(value.contains("threads.main.cpu_cores"));
}

TEST(Monitor, SaysOnceWhyItEnds) {
  Records records;
  {
    const Monitor monitor(
        records, {.more = []() -> std::vector<core::Figure> { throw std::runtime_error("the allocator is gone"); }});
    EXPECT_TRUE(comes_true([&] { return records.said("the allocator is gone") > 0; }));
  }
  EXPECT_EQ(records.said("the machine is not watched any more: the allocator is gone"), 1);
  EXPECT_TRUE(records.all().empty());
}

TEST(Monitor, ACallThatHangsDoesNotHoldTheEndOfARun) {
  const auto hangs = std::make_shared<std::atomic<bool>>(true);
  const auto entered = std::make_shared<std::atomic<bool>>(false);
  Records records;
  {
    const Monitor monitor(records,
                          {.more =
                               [hangs, entered] {
                                 *entered = true;
                                 while (*hangs) {
                                   std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                 }
                                 return std::vector<core::Figure>();
                               }},
                          0.05);
    ASSERT_TRUE(comes_true([&] { return entered->load(); }));
  }
  EXPECT_EQ(records.said("the monitor has not answered for 0.05 s"), 1);
  *hangs = false;
  EXPECT_TRUE(comes_true([&] { return hangs.use_count() == 1; })) << "the thread ends when the call returns";
  EXPECT_TRUE(records.all().empty()) << "after the end of the run nothing is emitted";
}

}  // namespace
}  // namespace stoker::observe
