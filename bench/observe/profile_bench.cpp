// SPDX-License-Identifier: Apache-2.0
// What a profile burst costs a step: before it, during it, and after it.
//     profile_bench [ROUNDS] [model=NAME] [batch=N] [steps=N]
// Each round: steps without a profile, a burst of as many, and steps after it was detached; and a control, the same
// without a burst, which shows what the measurement itself can tell apart. Ahead of each window steps run for a tenth
// of a second, so that caches hold the step's data again. CPU time of the thread that steps, on one thread.
// "bare" is the least that PyTorch's recorder costs: a burst of it with the names of calls alone, without shapes,
// memory and host code. Exits with 1 if the whole interval of a burst lies above twice a step of a millisecond or more,
// or if the interval of the step after it lies above that of the control. A shorter step is shown and not judged: its
// calls take about as long as recording them.
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "bench_main.h"
#include "stoker/base/clock.h"
#include "stoker/base/fmt.h"
#include "stoker/job/process.h"
#include "stoker/observe/profile/host_code.h"
#include "stoker/observe/profile/host_sampler.h"
#include "stoker/observe/profile/profile_table.h"
#include "stoker/observe/profile/recorder.h"
#include "stoker/study/paired.h"
#include "stoker/study/tips/bench_model.h"
#include "stoker/train/step.h"

namespace stoker::bench {
namespace {

struct Case {
  std::string model;
  std::int64_t batch;
};
const std::vector<Case> kCases = {{"mlp", 32}, {"cnn", 32}, {"gpt", 4}, {"resnet18", 4}};
constexpr double kMostDuring = 2;
constexpr double kJudged = 1e-3;  // seconds per step

class Steps {
 public:
  explicit Steps(const Case& each)
      : bench_(study::make_bench_model(each.model, {.batch = each.batch})),
        step_(*bench_.model, bench_.optimizer, {}) {}

  // CPU seconds of a step, the mean of some.
  double seconds(int steps, observe::profile::Recorder* recorder = nullptr) {
    const double began = thread_cpu_s();
    for (int i = 0; i < steps; ++i) {
      if (recorder != nullptr) {
        recorder->begin_step(number_);
      }
      step_.compute(bench_.batch, number_++);
      step_.commit(bench_.lr);
      if (recorder != nullptr) {
        recorder->end_step();
      }
    }
    return (thread_cpu_s() - began) / steps;
  }
  // The same while PyTorch's recorder notes names alone.
  double bare(int steps) {
    namespace kineto = torch::autograd::profiler;
    const kineto::ProfilerConfig names(kineto::ProfilerState::KINETO);
    const std::set<torch::profiler::impl::ActivityType> host = {torch::profiler::impl::ActivityType::CPU};
    kineto::prepareProfiler(names, host);
    kineto::enableProfiler(names, host);
    const double each = seconds(steps);
    (void)kineto::disableProfiler();
    return each;
  }
  // The same, once caches hold what a step needs, over at least as much time.
  double settled(int steps) {
    const Stopwatch watch;
    double one = seconds(1);
    while (watch.seconds() < kWindow) {
      one = seconds(1);
    }
    return seconds(std::max(steps, static_cast<int>(kWindow / one)));
  }

 private:
  static constexpr double kWindow = 0.1;  // seconds

  study::BenchModel bench_;
  train::Step step_;
  std::int64_t number_ = 0;
};

struct Rounds {
  std::vector<double> before, during, bare, after, control_before, control_after, pauses;
  std::size_t operators = 0;
};

Rounds measure(const Case& each, int rounds, int count, const std::filesystem::path& file) {
  Steps steps(each);
  steps.seconds(count);
  Rounds all;
  for (int round = 0; round < rounds; ++round) {
    all.control_before.push_back(steps.settled(count));
    all.control_after.push_back(steps.settled(count));
    all.before.push_back(steps.settled(count));
    all.bare.push_back(steps.bare(count));
    steps.settled(count);
    observe::profile::Recorder recorder(c10::kCPU);
    steps.seconds(observe::profile::Recorder::kWarmUp);
    recorder.start();
    observe::profile::HostSampler sampler;
    all.during.push_back(steps.seconds(count, &recorder));
    const Stopwatch watch;
    const auto samples = sampler.stop();
    const auto recorded = recorder.finish(file);
    (void)observe::profile::host_code(samples);
    all.operators = recorded.calls.size() / static_cast<std::size_t>(count);
    (void)observe::profile::profile_table(recorded, /*gpu=*/false);
    all.pauses.push_back(watch.seconds());
    all.after.push_back(steps.settled(count));
  }
  return all;
}

bool compare(const Case& each, int rounds, int count, const std::filesystem::path& file) {
  const Rounds all = measure(each, rounds, count, file);
  const study::Ratio during = study::ratio_of(all.during, all.before), bare = study::ratio_of(all.bare, all.before),
                     after = study::ratio_of(all.after, all.before),
                     control = study::ratio_of(all.control_after, all.control_before);
  const double step = study::median_of(all.before);
  const bool slow = during.low > kMostDuring, judged = step >= kJudged, cost_after = after.low > control.high;
  const auto shown = [](const study::Ratio& ratio, int digits) {
    return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})", ratio.median, digits, ratio.low, digits, ratio.high, digits);
  };
  fmt::print("  {:9} {:>5} {:>8.3f} {:>6} {:20} {:20} {:>7.2f}  {:23} {:23} {:>8.0f}{}{}\n", each.model, each.batch,
             1e3 * step, all.operators, shown(during, 2), shown(bare, 2),
             1e6 * (during.median - 1) * step / static_cast<double>(all.operators), shown(after, 3), shown(control, 3),
             1e3 * study::median_of(all.pauses), slow ? (judged ? "  ABOVE 2" : "  above 2, not judged") : "",
             cost_after ? "  COST AFTER" : "");
  return !(slow && judged) && !cost_after;
}

int run(int argc, char** argv) {
  int rounds = 7, count = 20;
  std::string model;
  std::int64_t batch = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::string value = argument.substr(argument.find('=') + 1);
    if (argument.starts_with("model=")) {
      model = value;
    } else if (argument.starts_with("batch=")) {
      batch = std::stoll(value);
    } else if (argument.starts_with("steps=")) {
      count = std::stoi(value);
    } else {
      rounds = std::stoi(argument);
    }
  }
  job::start_process();
  at::set_num_threads(1);
  fmt::print("{}, {} rounds of {} steps; ratios to the steps before, with 95 % intervals\n", job::version_text(),
             rounds, count);
  fmt::print("  {:9} {:>5} {:>8} {:>6} {:20} {:20} {:>7}  {:23} {:23} {:>8}\n", "model", "batch", "ms/step", "calls",
             "during", "bare", "us/call", "after", "control", "pause ms");
  const std::filesystem::path file = std::filesystem::temp_directory_path() / "profile_bench.pt.trace.json.gz";
  bool good = true;
  for (const Case& each : model.empty() ? kCases : std::vector<Case>{{model, batch}}) {
    good = compare(each, rounds, count, file) && good;
  }
  std::filesystem::remove(file);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace stoker::bench

int main(int argc, char** argv) { return stoker::bench::bench_main("profile_bench", stoker::bench::run, argc, argv); }
