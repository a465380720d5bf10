// SPDX-License-Identifier: Apache-2.0
// Main memory is short: tasks wait until pages are read back from a disk, or until others are freed.
#include "stoker/base/bytes_text.h"
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.02;  // of the time

Judgement judge(const Facts& facts) {
  auto pressure = facts.figure("cgroup.memory_pressure_share");
  pressure = pressure ? pressure : facts.figure("machine.memory_pressure_share");
  if (!pressure) {
    return Abstained{"the kernel's memory pressure (monitor; /proc/pressure)"};
  }
  if (*pressure < kMost) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("Main memory is short: some task waits for it {} of the time", percent(*pressure));
  finding.evidence = {fmt::format("memory pressure: {} of the time (monitor)", percent(*pressure))};
  if (const auto faults = facts.figure("process.disk_faults_per_second")) {
    finding.evidence.push_back(fmt::format("pages read back from a disk: {:.0f} per second (monitor)", *faults));
  }
  if (const auto resident = facts.figure("process.resident_bytes")) {
    finding.evidence.push_back(fmt::format("resident: {} (monitor)", bytes_text(static_cast<std::int64_t>(*resident))));
  }
  finding.cure = "a smaller cache, or fewer programs beside the training";
  if (const std::string_view cache = facts.word("plan.cache"); !cache.empty() && cache != "0") {
    finding.option = "cache=0";
  }
  finding.gain = predict(facts.periods, share_of_time(std::min(*pressure, 0.9)), {.low = 0.1, .high = 1});
  return finding;
}

}  // namespace

const Rule kMemPressure = {
    .id = "mem_pressure",
    .level = Level::kMonitor,
    .signal = "the kernel's memory pressure: share of time in which some task waited for memory",
    .threshold = "2 % of the time",
    .source = "trainings with free memory show 0.0 %",
    .disproof = "the pressure is another cgroup's, and this program has no page faults from disks",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
