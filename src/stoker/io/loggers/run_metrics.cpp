// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/loggers/run_metrics.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "stoker/base/fmt.h"

namespace stoker::io {
namespace {

using namespace core;

constexpr double kPaceSeconds = 1;  // over which the speed is measured
// A figure that the monitor no longer gives is shown for three times its interval: one that is late is not gone. Some
// figures come every 10 s while records come each second; a longer pause means that the figure was gone.
constexpr double kKeptIntervals = 3, kLongestInterval = 10;

std::string number(double value) { return fmt::format("{}", value); }

// "gpu0.power_watts" -> stoker_gpu_power_watts{gpu="0"}, "threads.loader.cpu_cores" ->
// stoker_threads_cpu_cores{thread="loader"}, "process.resident_bytes" -> stoker_process_resident_bytes.
std::pair<std::string, Labels> metric_of(std::string_view figure) {
  constexpr std::string_view kGpu = "gpu", kThreads = "threads.";
  const std::size_t first = figure.find('.'), last = figure.rfind('.');
  if (figure.starts_with(kThreads) && last >= kThreads.size()) {
    return {"stoker_threads_" + metric_name(figure.substr(last + 1)),
            {{"thread", std::string(figure.substr(kThreads.size(), last - kThreads.size()))}}};
  }
  if (figure.starts_with(kGpu) && first != figure.npos && first > kGpu.size()) {
    const std::string_view device = figure.substr(kGpu.size(), first - kGpu.size());
    if (std::ranges::all_of(device, [](char c) { return c >= '0' && c <= '9'; })) {
      return {"stoker_gpu_" + metric_name(figure.substr(first + 1)), {{"gpu", std::string(device)}}};
    }
  }
  return {"stoker_" + metric_name(figure), {}};
}

}  // namespace

RunMetrics::RunMetrics() { metrics_.set_total("stoker_findings", "Remarks about the run.", {}, 0); }

void RunMetrics::on(const Event& event) {
  std::visit([this](const auto& each) { take(each); }, event);
}

void RunMetrics::take(const RunStarted& event) {
  scalars_ = event.scalars;
  metrics_.inform("stoker_run", "The run.", {{"title", event.title}, {"folder", event.folder}});
  metrics_.set("stoker_step", "Steps done.", {}, static_cast<double>(event.first_step));
  metrics_.set("stoker_last_step", "The step at which the run ends.", {}, static_cast<double>(event.last_step));
}

void RunMetrics::take(const StepFinished& event) {
  newest_ = event;
  samples_ += event.samples;
  seconds_ += event.seconds;
  waited_ += event.data_wait_seconds;
  pace_.samples += event.samples;
  pace_.seconds += event.seconds;
  pace_.waited += event.data_wait_seconds;
  if (pace_.seconds >= kPaceSeconds) {
    known_pace_ = std::exchange(pace_, {});
  }
}

// Once per request, since there may be thousands of steps between two.
void RunMetrics::show(const StepFinished& step) {
  metrics_.set("stoker_step", "Steps done.", {}, static_cast<double>(step.step));
  metrics_.set("stoker_epoch", "The epoch, from 0.", {}, static_cast<double>(step.position.epoch));
  metrics_.set("stoker_learning_rate", "Of the newest step.", {}, step.lr);
  metrics_.set_total("stoker_samples", "Samples trained on.", {}, static_cast<double>(samples_));
  metrics_.set_total("stoker_train_seconds", "Time of steps.", {}, seconds_);
  metrics_.set_total("stoker_data_wait_seconds", "Time of steps that was spent waiting for a batch.", {}, waited_);
  if (step.memory_bytes >= 0) {
    metrics_.set("stoker_memory_bytes", "Held by tensors on the device.", {}, static_cast<double>(step.memory_bytes));
  }
  const Scalars values = step.scalars ? step.scalars->read() : Scalars{};
  for (std::size_t i = 0; i < std::min(values.count, scalars_.size()); ++i) {
    metrics_.set("stoker_scalar", "A value of the newest step.", {{"name", scalars_[i]}}, values.values[i]);
  }
  if (known_pace_.seconds > 0) {
    metrics_.set("stoker_samples_per_second", "Over the last second, or the last step if it was longer.", {},
                 static_cast<double>(known_pace_.samples) / known_pace_.seconds);
    metrics_.set("stoker_data_wait_ratio", "Share of that time spent waiting for a batch.", {},
                 known_pace_.waited / known_pace_.seconds);
  }
}

std::string RunMetrics::text(double now) {
  if (newest_) {
    show(*newest_);
  }
  show_machine(now);
  return metrics_.text();
}

void RunMetrics::take(const Fed& event) {
  metrics_.set("stoker_loader_threads", "Loader threads now.", {}, event.source.threads);
  for (const StageFigures& stage : event.source.stages) {
    metrics_.add("stoker_loader_seconds", "Work of loader threads.", {{"stage", stage.name}}, stage.seconds);
  }
}

void RunMetrics::take(const Evaluated& event) {
  for (const MetricValue& metric : event.metrics) {
    metrics_.set("stoker_evaluation", "The newest evaluation.", {{"split", event.split}, {"metric", metric.name}},
                 metric.value);
  }
  metrics_.set("stoker_evaluation_step", "The step of the newest evaluation.", {{"split", event.split}},
               static_cast<double>(event.step));
}

void RunMetrics::take(const CheckpointSaved& event) {
  metrics_.set("stoker_checkpoint_step", "The step of the newest checkpoint.", {{"kind", event.kind}},
               static_cast<double>(event.step));
}

void RunMetrics::take(const FaultSurvived& event) {
  metrics_.add("stoker_faults", "Faults that the run survived.", {{"kind", event.kind}}, 1);
}

void RunMetrics::take(const Finding&) { metrics_.add("stoker_findings", "Remarks about the run.", {}, 1); }

void RunMetrics::take(const Monitored& event) {
  for (const Figure& figure : event.figures) {
    const auto [place, first] = watched_.try_emplace(figure.name);
    Watched& watched = place->second;
    double since = 0;
    if (first) {
      std::tie(watched.metric, watched.labels) = metric_of(figure.name);
    } else {
      since = std::min(event.time - watched.time, kLongestInterval);
    }
    watched.interval = std::max(event.seconds, since);
    watched.value = figure.value;
    watched.time = event.time;
  }
}

void RunMetrics::show_machine(double now) {
  for (const auto& [name, watched] : watched_) {
    if (now - watched.time <= kKeptIntervals * watched.interval) {
      metrics_.set(watched.metric, "Of the machine or the process, by the monitor.", watched.labels, watched.value);
    } else {
      metrics_.remove(watched.metric, watched.labels);
    }
  }
}

void RunMetrics::take(const Anatomy& event) {
  if (event.whole) {  // other records had its time
    return;
  }
  const auto count = [&](std::string_view name, std::string_view help, const Labels& labels, double seconds) {
    if (seconds >= 0) {
      metrics_.add(name, help, labels, seconds);
    }
  };
  for (const PhaseTime& phase : event.phases) {
    const Labels labels{{"phase", phase.name}};
    count("stoker_phase_seconds", "Time of the training thread by phase of a step.", labels, phase.seconds);
    count("stoker_phase_cpu_seconds", "Of this, computing.", labels, phase.cpu_seconds);
    count("stoker_phase_device_seconds", "Of the device, for the same work.", labels, phase.device_seconds);
  }
  for (const PhaseTime& mark : event.marks) {
    count("stoker_mark_seconds", "Time of stages that the program named.", {{"mark", mark.name}}, mark.seconds);
  }
  for (const auto& [share, seconds] :
       {std::pair{0.5, event.p50}, {0.9, event.p90}, {0.99, event.p99}, {1.0, event.slowest}}) {
    metrics_.set("stoker_step_seconds", "Time of a step: quantiles of the newest period.",
                 {{"quantile", number(share)}}, seconds);
  }
}

void RunMetrics::take(const SlowStep& event) {
  metrics_.add("stoker_slow_steps", "Steps that took much longer than usual.", {{"phase", event.phase}}, 1);
}

}  // namespace stoker::io
