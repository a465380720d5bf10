// SPDX-License-Identifier: Apache-2.0
// Compares a training step of Stoker with a bare LibTorch loop with the same model and the same fused kernel:
//     step_bench one [loop=stoker|bare] [model=mlp|cnn|resnet18|resnet34|resnet50|gpt|gpt2] [batch=N] [size=N]
//                    [precision=fp32|bf16|fp16] [layout=channels_last|contiguous] [intra_op=N] [steps=N] [seconds=S]
//                    [device=cpu|cuda]
// times one configuration on a ready-made batch and prints one line of JSON.
//     step_bench pairs [PAIRS] [device=cpu|cuda]
// runs both loops in turns in one process: the overhead of Stoker, with all that is always on (logs, figures of
// memory), in a step of 0.2 ms and of 2 ms.
//     step_bench operators [model=...] [precision=...]
// counts the operators of one step that only one of the loops calls; noise does not change this.
#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <charconv>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>

#include "bench_main.h"
#include "op_count.h"
#include "step_loops.h"
#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/base/fmt.h"
#include "stoker/device/backend.h"
#include "stoker/device/process_facts.h"
#include "stoker/device/tensor_bytes.h"
#include "stoker/job/process.h"
#include "stoker/models/network.h"
#include "stoker/study/paired.h"

namespace stoker::bench {
namespace {

constexpr std::string_view kWhere = "bench.step";
constexpr int kSkipped = 77;  // exit code if this machine lacks the device

// key=value arguments; each is read once, and none may be left over.
class Arguments {
 public:
  Arguments(int first, int argc, char** argv) {
    for (int i = first; i < argc; ++i) {
      const std::string text = argv[i];
      const auto cut = text.find('=');
      if (cut == std::string::npos) {
        fail<ConfigError>(kWhere, "\"{}\" is not key=value", text);
      }
      values_[text.substr(0, cut)] = text.substr(cut + 1);
    }
  }
  std::string text(const std::string& key, const std::string& usual) {
    const auto node = values_.extract(key);
    return node.empty() ? usual : node.mapped();
  }
  double number(const std::string& key, double usual) {
    const std::string value = text(key, "");
    double result = usual;
    if (!value.empty() && std::from_chars(value.data(), value.data() + value.size(), result).ec != std::errc()) {
      fail<ConfigError>(kWhere, "{}={} is not a number", key, value);
    }
    return result;
  }
  std::int64_t whole(const std::string& key, std::int64_t usual) {
    return static_cast<std::int64_t>(number(key, static_cast<double>(usual)));
  }
  void finish() const {
    if (!values_.empty()) {
      fail<ConfigError>(kWhere, "{}= is unknown; see the comment at the top of step_bench.cpp", values_.begin()->first);
    }
  }

 private:
  std::map<std::string, std::string> values_;
};

std::unique_ptr<Loop> make_loop(const std::string& kind, StepCase& made) {
  if (kind != "stoker" && kind != "bare") {
    fail<ConfigError>(kWhere, "loop is stoker or bare, got {}", kind);
  }
  return kind == "stoker" ? make_stoker_loop(made) : make_bare_loop(made);
}

// Milliseconds per step: one figure per step on a CPU; on a GPU one per several steps, with a wait after the last.
class StepTimes {
 public:
  StepTimes(c10::Device device, std::int64_t steps, double seconds)
      : device_(device), together_(device.is_cpu() ? 1 : 10), steps_(steps), seconds_(seconds) {}

  // Called before each step; false ends the measurement.
  bool before_step() {
    if (taken_ % together_ == 0) {
      device::backend_for(device_).synchronize(device_);
      const double now = watch_.seconds();
      if (taken_ > 0) {
        times_.push_back((now - last_) * 1e3 / static_cast<double>(together_));
      }
      last_ = now;
    }
    const bool enough = taken_ >= steps_ || (last_ >= seconds_ && !times_.empty());
    taken_ += enough ? 0 : 1;
    return !enough;
  }
  [[nodiscard]] std::int64_t steps() const { return taken_; }
  [[nodiscard]] double quantile(double share) const {
    std::vector<double> sorted = times_;
    std::ranges::sort(sorted);
    return sorted.empty() ? 0 : sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
  }

 private:
  c10::Device device_;
  std::int64_t together_, steps_, taken_ = 0;
  double seconds_, last_ = 0;
  std::vector<double> times_;
  Stopwatch watch_;
};

void one(const CaseOptions& options, Arguments arguments) {
  const c10::Device device = options.device;
  const std::string kind = arguments.text("loop", "stoker");
  at::set_num_threads(static_cast<int>(arguments.whole("intra_op", 1)));
  const std::int64_t steps = arguments.whole("steps", 1'000'000);
  const double seconds = arguments.number("seconds", 5);
  arguments.finish();

  StepCase made;
  std::unique_ptr<Loop> loop;
  std::int64_t tensor_bytes = 0;
  {
    device::TensorBytes bytes(device);  // not while steps are timed: it slows down each allocation
    made = make_case(options);
    loop = make_loop(kind, made);
    loop->run(5);
    device::backend_for(device).synchronize(device);
    tensor_bytes = bytes.peak();
  }
  loop->run(20);
  StepTimes times(device, steps, seconds);
  loop->run(steps + 1, [&] { return times.before_step(); });
  const device::Versions versions = device::versions();
  const at::Context& context = at::globalContext();
  const bool tf32 =
      context.float32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL) == at::Float32Precision::TF32;
  const nlohmann::ordered_json line = {{"loop", kind},
                                       {"model", made.options.model},
                                       {"batch", made.options.batch},
                                       {"size", made.options.size},
                                       {"precision", made.options.precision},
                                       {"layout", made.options.channels_last ? "channels_last" : "contiguous"},
                                       {"device", device.str()},
                                       {"tf32", tf32},
                                       {"cudnn_benchmark", context.benchmarkCuDNN()},
                                       {"deterministic", context.deterministicAlgorithms()},
                                       {"intra_op", at::get_num_threads()},
                                       {"parameters", core::parameter_count(made.model->parameters())},
                                       {"steps", times.steps()},
                                       {"ms", times.quantile(0.5)},
                                       {"ms_q1", times.quantile(0.25)},
                                       {"ms_q3", times.quantile(0.75)},
                                       {"peak_tensor_bytes", tensor_bytes},
                                       {"peak_resident_bytes", device::process_memory().peak},
                                       {"torch", versions.torch},
                                       {"compiler", versions.compiler}};
  fmt::print("{}\n", line.dump());
}

// Both loops of a case, and the time of their steps.
class Pair {
 public:
  explicit Pair(const CaseOptions& options) : device_(options.device), cases_{make_case(options), make_case(options)} {
    stoker_ = make_stoker_loop(cases_[0]);
    bare_ = make_bare_loop(cases_[1]);
    stoker_->run(50);
    bare_->run(50);
    finish();
  }

  // Milliseconds of a bare step (on a CPU: CPU time of the thread): the fastest of a few measurements, because other
  // work on the machine can only slow one down.
  double bare_ms() {
    constexpr int kLooks = 8, kSteps = 10;
    double best = 0;
    for (int look = 0; look < kLooks; ++look) {
      const double start = clock_s();
      bare_->run(kSteps);
      finish();
      const double ms = (clock_s() - start) * 1e3 / kSteps;
      best = look == 0 ? ms : std::min(best, ms);
    }
    return best;
  }

  // Turns of 0.1 s. Prints the bare step and what Stoker's step adds to it, with the interval of the ratio.
  void compare(const std::string& title, int pairs) {
    const auto run = static_cast<std::int64_t>(std::max(1.0, 25 / bare_ms()));  // steps per call: 25 ms
    const auto side = [&](Loop& loop) { return study::Side{[&loop, run] { loop.run(run); }, [this] { finish(); }}; };
    study::PairingOptions options;
    options.least_pairs = options.most_pairs = pairs;
    options.block_seconds = 0.1;
    fmt::print("{}\n", title);
    for (const auto& [clock, name] : {std::pair{study::Clock::kThreadCpu, "CPU of the thread"},
                                      std::pair{study::Clock::kWall, "wall time        "}}) {
      if (clock == study::Clock::kThreadCpu && !device_.is_cpu()) {
        continue;  // it would measure queueing the work, not doing it
      }
      options.clock = clock;
      const study::Paired paired = study::time_in_turns(side(*stoker_), side(*bare_), options);
      const double us = paired.second_seconds * 1e6 / static_cast<double>(run);
      const auto [ratio, low, high, count] = paired.ratio;
      fmt::print(
          "  {}: bare {:7.1f} us; Stoker {:+5.1f} us ({:+.1f} to {:+.1f}), {:+.2f} % ({:+.2f} to {:+.2f}), {} pairs\n",
          name, us, (ratio - 1) * us, (low - 1) * us, (high - 1) * us, (ratio - 1) * 100, (low - 1) * 100,
          (high - 1) * 100, count);
    }
    std::fflush(stdout);
  }

 private:
  void finish() const { device::backend_for(device_).synchronize(device_); }
  double clock_s() const { return device_.is_cpu() ? thread_cpu_s() : now_s(); }

  c10::Device device_;
  StepCase cases_[2];
  std::unique_ptr<Loop> stoker_, bare_;
};

// The batch for which a bare step takes about `ms`. It takes a few tries, because time grows slower than the batch.
CaseOptions sized_to(CaseOptions options, double ms) {
  for (int look = 0; look < 4; ++look) {
    const double now = Pair(options).bare_ms();
    options.batch = std::max<std::int64_t>(2, std::llround(static_cast<double>(options.batch) * ms / now));
  }
  return options;
}

void pairs(int count, c10::Device device) {
  at::set_num_threads(1);
  fmt::print(
      "A step of Stoker (run_loop with metrics.csv, metrics.jsonl, TensorBoard, progress line, counted tensors, the "
      "watch for leaks and the anatomy)\nagainst a bare LibTorch loop, turns of 0.1 s in one process, 1 intra-op "
      "thread, {}. In "
      "brackets: 95 % interval of the median."
      "\n\n",
      device.str());
  CaseOptions tiny;
  tiny.device = device;
  Pair(tiny).compare("mlp 64-64-64-10, batch 32, sgd (promised: +35 us)", count);
  CaseOptions wide = tiny;
  wide.size = wide.width = 512;
  wide.batch = 64;
  wide = sized_to(wide, 2);
  Pair(wide).compare(fmt::format("mlp 512-512-512-10, batch {}, sgd (promised: +1 %)", wide.batch), count);
  CaseOptions cnn = tiny;
  cnn.model = "cnn";
  cnn.size = 8;
  cnn.batch = 8;
  cnn = sized_to(cnn, 2);
  Pair(cnn).compare(fmt::format("cnn, 8 pixels, batch {}, Nesterov sgd (promised: +1 %)", cnn.batch), count);
}

void operators(CaseOptions options) {
  StepCase cases[2] = {make_case(options), make_case(options)};
  const auto stoker = make_stoker_loop(cases[0]);
  const auto bare = make_bare_loop(cases[1]);
  constexpr int kSteps = 10;  // integer division removes what a run does once
  std::map<std::string, int> calls[2];
  for (const int side : {0, 1}) {
    Loop& loop = side == 0 ? *stoker : *bare;
    loop.run(2);
    calls[side] = count_operators([&] { loop.run(kSteps); });
  }
  std::map<std::string, int> all = calls[0];
  all.insert(calls[1].begin(), calls[1].end());
  int sums[2] = {0, 0};
  fmt::print("operators per step, {} {}: Stoker's, the bare loop's, if they differ\n", options.model,
             options.precision);
  for (const auto& [name, ignored] : all) {
    const int ours = calls[0][name] / kSteps, bares = calls[1][name] / kSteps;
    sums[0] += ours;
    sums[1] += bares;
    if (ours != bares) {
      fmt::print("  {:4} {:4}  {}\n", ours, bares, name);
    }
  }
  fmt::print("  {:4} {:4}  all\n", sums[0], sums[1]);
}

CaseOptions case_options(Arguments& arguments, c10::Device device) {
  CaseOptions options;
  options.model = arguments.text("model", "mlp");
  options.batch = arguments.whole("batch", 0);
  options.size = arguments.whole("size", 0);
  options.width = arguments.whole("width", options.width);
  options.precision = arguments.text("precision", "fp32");
  const std::string layout = arguments.text("layout", "channels_last");
  if (layout != "channels_last" && layout != "contiguous") {
    fail<ConfigError>(kWhere, "layout is channels_last or contiguous, got {}", layout);
  }
  options.channels_last = layout == "channels_last";
  options.device = device;
  return options;
}

int run(int argc, char** argv) {
  job::start_process();
  const std::string use = argc > 1 ? argv[1] : "pairs";
  int first = 2, count = 30;
  if (use == "pairs" && argc > 2 && std::string_view(argv[2]).find('=') == std::string_view::npos) {
    count = std::stoi(argv[first++]);
  }
  Arguments arguments(first, argc, argv);
  const c10::Device device(arguments.text("device", "cpu"));
  if (device::find_backend(device.type()) == nullptr) {
    fmt::print("SKIPPED: no CUDA: {}\n", device::missing_reason(device.type()));
    return kSkipped;
  }
  if (use == "one") {
    const CaseOptions options = case_options(arguments, device);
    one(options, std::move(arguments));
  } else if (use == "operators") {
    const CaseOptions options = case_options(arguments, device);
    arguments.finish();
    operators(options);
  } else if (use == "pairs") {
    arguments.finish();
    pairs(count, device);
  } else {
    fail<ConfigError>(kWhere, "the uses are one, pairs and operators, got {}", use);
  }
  return 0;
}

}  // namespace
}  // namespace stoker::bench

int main(int argc, char** argv) { return stoker::bench::bench_main("step_bench", stoker::bench::run, argc, argv); }
