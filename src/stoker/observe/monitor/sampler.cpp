// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/monitor/sampler.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "stoker/base/clock.h"
#include "stoker/base/fmt.h"
#include "stoker/device/gpu_process.h"
#include "stoker/observe/monitor/notebook.h"
#include "stoker/observe/monitor/pitfalls.h"

namespace stoker::observe {
namespace {

constexpr double kPageSeconds = 10;  // between two looks at PSS and descriptors
constexpr double kShortest = 0.05;   // seconds of a last window
// Shares of a core, together below 0.5 %.
constexpr double kFastShare = 0.0005, kGpuShare = 0.0015, kGpuReportShare = 0.001, kThreadShare = 0.001,
                 kPageShare = 0.0005;

std::optional<double> cpu_seconds(const ProcessTimes& times) {
  return times.user_seconds && times.system_seconds ? std::optional(*times.user_seconds + *times.system_seconds)
                                                    : std::nullopt;
}

// Six digits, but all of a whole number: records stay small.
void shorten(double& value) {
  if (value != std::round(value)) {
    value = std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
  }
}

std::unique_ptr<GpuWatch> watch_of(const MonitorOptions& options) {
  const auto gpu =
      options.nvml == nullptr || options.gpu_bus_id.empty() ? std::nullopt : options.nvml->find(options.gpu_bus_id);
  return gpu ? std::make_unique<GpuWatch>(*options.nvml, *gpu, "gpu" + std::to_string(*gpu)) : nullptr;
}

}  // namespace

double window_seconds(double since_start) { return std::clamp(since_start / 3600, 1.0, 10.0); }

Sampler::Sampler(const MonitorOptions& options, double now)
    : root_(options.root),
      more_(options.more),
      process_(options.root / "proc" / options.process),
      machine_(options.root),
      groups_(options.root),
      threads_(options.root / "proc" / options.process),
      gpu_(watch_of(options)),
      start_(now),
      window_start_(now),
      threads_at_(now),
      times_at_(now),
      gpu_at_(now),
      fast_(kTickSeconds, kFastShare),
      gpu_pace_(kTickSeconds, kGpuShare),
      gpu_report_pace_(1, kGpuReportShare),
      thread_pace_(1, kThreadShare),
      page_pace_(kPageSeconds, kPageShare),
      window_times_(process_.times()),
      last_times_(window_times_),
      window_io_(process_.io()) {
  gpu_report_pace_.read(now, 0);
  thread_pace_.read(now, 0);
}

std::vector<std::string> Sampler::pitfalls() const {
  Surroundings around = surroundings(root_);
  if (gpu_ && gpu_->facts().mig) {
    around.divided_gpus.push_back(gpu_->facts().name);
  }
  if (!gpu_) {
    around.shared_bytes.reset();  // of no concern to a run on a CPU
  } else if (const auto kernel = notebook_above(root_);
             kernel && device::has_open(*kernel, device::gpu_files(), root_).value_or(false)) {
    around.notebooks.push_back(*kernel);
  }
  return observe::pitfalls(around);
}

void Sampler::sample(double now) {
  const double cpu = thread_cpu_s();
  if (fast_.due(now)) {
    const ProcessTimes times = process_.times();
    cores_.add(rate(cpu_seconds(last_times_), cpu_seconds(times), now - times_at_));
    resident_.add(times.resident_bytes);
    last_times_ = times;
    times_at_ = now;
    fast_.read(now, thread_cpu_s() - cpu);
  }
  const double after = thread_cpu_s();
  if (gpu_ && gpu_pace_.due(now)) {
    gpu_->sample();
    gpu_pace_.read(now, thread_cpu_s() - after);
  }
}

void Sampler::report_process(double seconds, Figures& figures) {
  const ProcessTimes& was = window_times_;
  const ProcessTimes times = process_.times();
  const ProcessIo io = process_.io();
  figures.put("process.cpu_cores", rate(cpu_seconds(was), cpu_seconds(times), seconds));
  figures.put("process.cpu_cores_max", cores_.highest());
  figures.put("process.system_cores", rate(was.system_seconds, times.system_seconds, seconds));
  figures.put("process.threads", times.threads);
  resident_.add(times.resident_bytes);
  figures.put("process.resident_bytes", resident_.highest());
  figures.put("process.page_faults_per_second", rate(was.page_faults, times.page_faults, seconds));
  figures.put("process.disk_faults_per_second", rate(was.disk_faults, times.disk_faults, seconds));
  figures.put("process.asked_bytes_per_second", rate(window_io_.asked_bytes, io.asked_bytes, seconds));
  figures.put("process.read_bytes_per_second", rate(window_io_.read_bytes, io.read_bytes, seconds));
  figures.put("process.written_bytes_per_second", rate(window_io_.written_bytes, io.written_bytes, seconds));
  window_times_ = times;
  window_io_ = io;
  cores_ = {};
  resident_ = {};
}

void Sampler::close_window(double now, core::Monitored& record) {
  Figures figures;
  record.seconds = now - window_start_;
  report_process(record.seconds, figures);
  if (page_pace_.due(now)) {
    const double cpu = thread_cpu_s();
    const ProcessPages pages = process_.pages();
    figures.put("process.proportional_bytes", pages.proportional_bytes);
    figures.put("process.private_dirty_bytes", pages.private_dirty_bytes);
    figures.put("process.open_files", process_.files());
    page_pace_.read(now, thread_cpu_s() - cpu);
  }
  if (thread_pace_.due(now)) {
    const double cpu = thread_cpu_s();
    threads_.report(now - threads_at_, figures);
    machine_.report(now - threads_at_, figures);
    groups_.report(now - threads_at_, figures);
    threads_at_ = now;
    thread_pace_.read(now, thread_cpu_s() - cpu);
  }
  if (gpu_ && gpu_report_pace_.due(now)) {
    const double cpu = thread_cpu_s();
    gpu_->report(now - gpu_at_, figures);
    gpu_at_ = now;
    gpu_report_pace_.read(now, thread_cpu_s() - cpu);
  }
  for (core::Figure& figure : more_ ? more_() : std::vector<core::Figure>()) {
    figures.put(std::move(figure.name), figure.value);
  }
  record.figures = figures.take();
  std::ranges::for_each(record.figures, shorten, &core::Figure::value);
  window_start_ = now;
}

std::optional<core::Monitored> Sampler::tick(double now) {
  sample(now);
  const double length = window_seconds(window_start_ - start_);
  if (now - window_start_ < length - kTickSeconds / 2) {
    return std::nullopt;
  }
  core::Monitored record;
  close_window(now, record);
  return record;
}

std::optional<core::Monitored> Sampler::finish(double now) {
  if (now - window_start_ < kShortest) {
    return std::nullopt;
  }
  thread_pace_ = Pace(1, kThreadShare);  // due, as the next
  gpu_report_pace_ = Pace(1, kGpuReportShare);
  core::Monitored record;
  close_window(now, record);
  return record;
}

}  // namespace stoker::observe
