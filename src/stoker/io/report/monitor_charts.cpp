// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/report/monitor_charts.h"

#include <algorithm>
#include <set>

namespace stoker::io {
namespace {

constexpr std::size_t kMostGroups = 6;  // of threads in a chart

const std::vector<MonitorChart>& of_the_host() {
  static const std::vector<MonitorChart> charts = {
      {"cores in use",
       "cores",
       {{"this run", "process.cpu_cores"},
        {"whole machine", "machine.busy_cores"},
        {"quota", "cgroup.cpu_limit_cores"}}},
      {"main memory",
       "bytes",
       {{"this run", "process.resident_bytes"},
        {"tensors", "device.allocated_bytes"},
        {"cgroup", "cgroup.memory_bytes"}}},
      {"bytes read",
       "bytes/s",
       {{"asked for", "process.asked_bytes_per_second"},
        {"from disks", "process.read_bytes_per_second"},
        {"from the network", "machine.received_bytes_per_second"}}},
      {"share of time in which something waited",
       "share",
       {{"for a core", "cgroup.cpu_pressure_share"},
        {"for a core (machine)", "machine.cpu_pressure_share"},
        {"for memory", "cgroup.memory_pressure_share"},
        {"for memory (machine)", "machine.memory_pressure_share"},
        {"for a disk", "cgroup.io_pressure_share"},
        {"for a disk (machine)", "machine.io_pressure_share"},
        {"stopped by the quota", "cgroup.throttled_share"}}},
  };
  return charts;
}

std::vector<MonitorChart> of_gpu(const std::string& gpu) {
  return {
      {gpu + ": busy",
       "share",
       {{"any kernel", gpu + ".busy_share"},
        {"multiprocessors", gpu + ".sm_busy_share"},
        {"tensor cores", gpu + ".tensor_busy_share"},
        {"memory bandwidth", gpu + ".memory_bandwidth_share"}}},
      {gpu + ": memory", "bytes", {{"used", gpu + ".memory_used_bytes"}, {"all", gpu + ".memory_bytes"}}},
      {gpu + ": power", "W", {{"drawn", gpu + ".power_watts"}, {"limit", gpu + ".power_limit_watts"}}},
      {gpu + ": clock", "Hz", {{"now", gpu + ".sm_clock_hz"}, {"highest", gpu + ".sm_clock_limit_hz"}}},
      {gpu + ": slowed down", "share", {{"share of time", gpu + ".throttled_share"}}},
      {gpu + ": temperature", "°C", {{"GPU", gpu + ".temperature_celsius"}}},
  };
}

// The groups of threads that have most of a figure.
MonitorChart of_threads(const std::string& title, std::string_view what, const std::vector<std::string>& names,
                        const std::function<double(const std::string&)>& weight) {
  constexpr std::string_view kStart = "threads.";
  MonitorChart chart{title, "cores", {}};
  for (const std::string& name : names) {
    if (name.starts_with(kStart) && name.ends_with(what)) {
      chart.lines.push_back({name.substr(kStart.size(), name.size() - kStart.size() - what.size()), name});
    }
  }
  std::ranges::sort(chart.lines, std::greater(), [&](const MonitorLine& line) { return weight(line.figure); });
  chart.lines.resize(std::min(chart.lines.size(), kMostGroups));
  return chart;
}

}  // namespace

std::vector<MonitorChart> monitor_charts(const std::vector<std::string>& names,
                                         const std::function<double(const std::string&)>& weight) {
  std::vector<MonitorChart> all;
  std::set<std::string> gpus;
  for (const std::string& name : names) {
    if (name.starts_with("gpu")) {
      gpus.insert(name.substr(0, name.find('.')));
    }
  }
  for (const std::string& gpu : gpus) {
    std::ranges::move(of_gpu(gpu), std::back_inserter(all));
  }
  std::ranges::copy(of_the_host(), std::back_inserter(all));
  all.push_back(of_threads("cores by kind of thread", ".cpu_cores", names, weight));
  all.push_back(of_threads("threads that wait for a core", ".waiting_cores", names, weight));
  for (MonitorChart& chart : all) {
    std::erase_if(chart.lines,
                  [&](const MonitorLine& line) { return std::ranges::find(names, line.figure) == names.end(); });
  }
  std::erase_if(all, [](const MonitorChart& chart) { return chart.lines.empty(); });
  return all;
}

}  // namespace stoker::io
