// SPDX-License-Identifier: Apache-2.0
// The cost of the monitor:     monitor_bench [SECONDS] [THREADS]
// First what each reading takes, then the CPU time of the monitor's thread over SECONDS (30) beside THREADS (24) other
// threads that work a little. Fails above half a percent of a core. A GPU's figures are part of it where there is one.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "bench_main.h"
#include "stoker/base/clock.h"
#include "stoker/observe/monitor/monitor.h"

namespace {

using namespace stoker;
using namespace stoker::observe;

constexpr double kMost = 0.005;  // of a core

// Median CPU microseconds of a call.
double microseconds(const std::function<void()>& call) {
  std::array<double, 51> times{};
  for (double& each : times) {
    const double start = thread_cpu_s();
    call();
    each = 1e6 * (thread_cpu_s() - start);
  }
  std::ranges::nth_element(times, times.begin() + std::ssize(times) / 2);
  return times[times.size() / 2];
}

void row(const char* what, double per_second, double cost) {
  fmt::print("  {:<34} {:>6.1f} us  {:>5.1f} times a second  {:.3f} % of a core\n", what, cost, per_second,
             100e-6 * per_second * cost);
}

class Nowhere final : public core::EventEmitter {
 public:
  void emit(core::Event event) override { records += std::holds_alternative<core::Monitored>(event) ? 1 : 0; }
  int records = 0;
};

void readings(const device::Nvml& nvml) {
  ProcessReader process("/proc/self");
  MachineWatch machine("/");
  GroupWatch groups("/");
  ThreadWatch threads("/proc/self");
  Figures figures;
  row("CPU time, memory (stat)", 10, microseconds([&] { static_cast<void>(process.times()); }));
  row("bytes (io)", 1, microseconds([&] { static_cast<void>(process.io()); }));
  row("threads", 1, microseconds([&] { threads.report(1, figures); }));
  row("machine (stat, meminfo, net)", 1, microseconds([&] { machine.report(1, figures); }));
  row("cgroup and pressure", 1, microseconds([&] { groups.report(1, figures); }));
  row("PSS (smaps_rollup)", 0.1, microseconds([&] { static_cast<void>(process.pages()); }));
  row("descriptors", 0.1, microseconds([&] { static_cast<void>(process.files()); }));
  if (nvml.count() > 0) {
    GpuWatch gpu(nvml, 0, "gpu0");
    row("GPU: busy, power, clocks", 10, microseconds([&] { gpu.sample(); }));
    row("GPU: memory, link, counters", 1, microseconds([&] { gpu.report(1, figures); }));
  } else {
    fmt::print("  {}\n", nvml.missing());
  }
}

int run(int argc, char** argv) {
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 30, workers = argc > 2 ? std::atoi(argv[2]) : 24;
  std::vector<std::jthread> threads;
  for (int i = 0; i < workers; ++i) {
    threads.emplace_back([](const std::stop_token& stopping) {
      while (!stopping.stop_requested()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    });
  }
  const device::Nvml& nvml = device::machine_nvml();
  fmt::print("one reading, beside {} threads:\n", workers);
  readings(nvml);
  Nowhere nowhere;
  double used = 0;
  const Stopwatch watch;
  {
    Monitor monitor(nowhere, {.nvml = &nvml, .gpu_bus_id = nvml.count() > 0 ? nvml.facts(0).bus_id : ""});
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    used = monitor.cpu_seconds();
  }
  const double share = used / watch.seconds();
  fmt::print("the monitor over {} s: {} records, {:.1f} ms of CPU time, {:.3f} % of a core (at most {:.1f} %)\n",
             seconds, nowhere.records, 1e3 * used, 100 * share, 100 * kMost);
  return share <= kMost ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return stoker::bench::bench_main("monitor_bench", run, argc, argv); }
