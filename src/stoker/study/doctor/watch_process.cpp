// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/doctor/watch_process.h"

#include <chrono>
#include <fstream>
#include <map>
#include <thread>

#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/device/cpu_quota.h"
#include "stoker/observe/doctor/process_facts.h"
#include "stoker/observe/monitor/process_list.h"
#include "stoker/observe/monitor/sampler.h"
#include "stoker/observe/profile/command_lines.h"
#include "stoker/study/doctor/scratch.h"

namespace stoker::study {

using namespace observe::doctor;

namespace {

constexpr double kSlice = 2;  // seconds
constexpr int kRate = 50;     // stacks per second

// CPU seconds of all processes below it, by their numbers.
std::map<int, double> children_times(int pid) {
  std::map<int, int> parents;
  std::map<int, double> all, below;
  for (const observe::ListedProcess& each : observe::list_processes({})) {
    parents[each.pid] = static_cast<int>(each.times.parent.value_or(0));
    all[each.pid] = each.times.user_seconds.value_or(0) + each.times.system_seconds.value_or(0);
  }
  for (const auto& [child, seconds] : all) {
    int above = child;
    for (int steps = 0; above != pid && above > 1 && steps < 100; ++steps) {
      const auto parent = parents.find(above);
      above = parent == parents.end() ? 0 : parent->second;
    }
    if (above == pid && child != pid) {
      below[child] = seconds;
    }
  }
  return below;
}

double between(const std::map<int, double>& before, const std::map<int, double>& after) {
  double sum = 0;
  for (const auto& [pid, seconds] : after) {
    const auto was = before.find(pid);
    sum += seconds - (was == before.end() ? 0 : was->second);
  }
  return std::max(sum, 0.0);
}

// Sleeps as long if there is no py-spy, or if it may not look.
std::optional<StackSamples> sampled_stacks(int pid, const std::filesystem::path& file) {
  const Stopwatch watch;
  (void)observe::profile::command_lines(
      {"py-spy", "record", "--pid", std::to_string(pid), "--duration", fmt::format("{:.0f}", kSlice), "--rate",
       std::to_string(kRate), "--format", "raw", "--threads", "--subprocesses", "--idle", "--nonblocking",
       "--full-filenames", "--output", file.native()},
      kSlice + 10);
  std::optional<StackSamples> stacks;
  if (std::ifstream folded(file); folded) {
    stacks = read_stacks(folded, pid);
  }
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  if (const double left = kSlice - watch.seconds(); left > 0) {
    std::this_thread::sleep_for(std::chrono::duration<double>(left));
  }
  return stacks;
}

}  // namespace

Examined examine_process(int pid, double seconds) {
  const auto listed = pid > 0 ? observe::read_process(pid, {}) : std::nullopt;
  if (!listed) {
    fail<ConfigError>("stoker.doctor", "there is no process {}; `stoker top` and `ps` list them", pid);
  }
  const Scratch scratch;
  observe::Sampler sampler({.process = std::to_string(pid)}, now_s());
  std::vector<ProcessSlice> slices;
  std::map<int, double> before = children_times(pid);
  const double end = now_s() + seconds;
  bool any_stacks = false;
  while (now_s() < end && observe::read_process(pid, {})) {
    const Stopwatch watch;
    ProcessSlice slice;
    slice.stacks = sampled_stacks(pid, scratch.path() / "stacks");
    any_stacks |= slice.stacks && slice.stacks->all > 0;
    std::map<int, double> after = children_times(pid);
    slice.children_cpu_seconds = between(before, after);
    before = std::move(after);
    slice.seconds = watch.seconds();
    if (const auto record = sampler.tick(now_s())) {
      for (const core::Figure& figure : record->figures) {
        slice.figures[figure.name] = figure.value;
      }
      slice.figures["process.cpu_cores"] += slice.children_cpu_seconds / slice.seconds;
      slice.figures["machine.cores"] = device::cpu_quota().cores;
      slices.push_back(std::move(slice));
    }
  }
  if (slices.empty()) {
    fail<ConfigError>("stoker.doctor", "process {} ended before anything was seen", pid);
  }
  Facts facts = process_facts(fmt::format("process {}: {}", pid, printable(listed->command).substr(0, 120)), slices);
  if (!any_stacks) {
    facts.damage.push_back(
        "py-spy gave no stacks, so it is unknown where the program spends its time: install it (pip install py-spy); "
        "for another user's process run as root");
  }
  Diagnosis diagnosis = examine(facts);
  return {std::move(facts), std::move(diagnosis)};
}

}  // namespace stoker::study
