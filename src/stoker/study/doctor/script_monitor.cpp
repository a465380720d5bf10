// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/doctor/script_monitor.h"

#include <fstream>

#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/device/cpu_quota.h"
#include "stoker/device/kernel_file.h"
#include "stoker/device/nvml.h"
#include "stoker/io/event_json.h"
#include "stoker/observe/doctor/script_facts.h"
#include "stoker/observe/doctor/script_process.h"

namespace stoker::study {
namespace {

constexpr double kLookEach = 0.25;  // seconds between two looks for the process that trains

void append(const std::filesystem::path& path, const std::string& line) {
  std::ofstream file(path, std::ios::app);
  if (!(file << line << '\n')) {
    fail<IoError>("stoker.doctor", "{}: cannot be written; is the disk full?", printable(path.native()));
  }
}

}  // namespace

ScriptMonitor::ScriptMonitor(std::filesystem::path records) : records_(std::move(records)) {
  append(records_ / observe::doctor::kMonitorFile, fmt::format(R"({{"cores":{}}})", device::cpu_quota().cores));
}

void ScriptMonitor::find_trainer(double now) {
  if (now - looked_ < kLookEach) {
    return;
  }
  looked_ = now;
  const observe::doctor::Trainer trainer = observe::doctor::training_process(records_);
  trainer_ = trainer.process;
  if (trainer_ != 0) {
    sampler_.emplace(observe::MonitorOptions{.process = std::to_string(trainer_),
                                             .nvml = trainer.gpu_bus_id.empty() ? nullptr : &device::machine_nvml(),
                                             .gpu_bus_id = trainer.gpu_bus_id},
                     now);
    others();  // from here on
  }
}

ScriptMonitor::Times ScriptMonitor::others() {
  Times sum;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(records_, error)) {
    const auto number = device::leading_number(entry.path().stem().native());
    const int pid = static_cast<int>(number.value_or(0));
    if (pid == 0 || pid == trainer_) {
      continue;
    }
    Times now;
    for (const auto& [thread, times] : observe::read_threads("/proc/" + std::to_string(pid))) {
      now.cpu_seconds += times.cpu_seconds;
      now.waited_seconds += times.waited_seconds.value_or(0);
    }
    Times& before = others_[pid];  // a process that is new since the last call started from 0
    sum.cpu_seconds += std::max(now.cpu_seconds - before.cpu_seconds, 0.0);
    sum.waited_seconds += std::max(now.waited_seconds - before.waited_seconds, 0.0);
    before = now;
  }
  return sum;
}

void ScriptMonitor::add_others(double seconds, std::vector<core::Figure>& figures) {
  const Times sum = others();
  for (core::Figure& figure : figures) {
    if (figure.name == "process.cpu_cores") {
      figure.value += sum.cpu_seconds / seconds;
    }
  }
  figures.push_back({"threads.workers.cpu_cores", sum.cpu_seconds / seconds});
  figures.push_back({"threads.workers.waiting_cores", sum.waited_seconds / seconds});
}

void ScriptMonitor::tick() {
  const double now = now_s();
  if (!sampler_) {
    return find_trainer(now);
  }
  if (std::optional<core::Monitored> record = sampler_->tick(now)) {
    record->time = clock_s(CLOCK_REALTIME);
    add_others(record->seconds, record->figures);
    append(records_ / observe::doctor::kMonitorFile, io::event_json(*record, {}));
  }
}

}  // namespace stoker::study
