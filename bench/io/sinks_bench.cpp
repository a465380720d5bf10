// SPDX-License-Identifier: Apache-2.0
// The cost of logging for the training loop:     sinks_bench [PAIRS]
// Blocks of ten 2 ms steps with and without a bus and all its sinks take turns, 25 turns per pair. It measures the CPU
// time of the loop's own thread, which other work on the machine changes least. Then the same with a sink that sleeps
// 1 s per event.
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "stoker/base/clock.h"
#include "stoker/base/fmt.h"
#include "stoker/io/event_bus.h"
#include "stoker/io/loggers/metrics_csv.h"
#include "stoker/io/loggers/metrics_jsonl.h"
#include "stoker/io/loggers/progress_line.h"
#include "stoker/io/loggers/tensorboard.h"
#include "stoker/study/paired.h"

namespace {

using namespace stoker;
using namespace stoker::core;

constexpr int kSteps = 10;  // per block
constexpr int kTurns = 25;  // blocks of each kind in a pair
constexpr double kStepSeconds = 0.002;

// A fixed amount of work that depends on the caches: passes over 128 KiB.
class Work {
 public:
  Work() {
    const double start = thread_cpu_s();
    do_passes(500);
    passes_ = std::max(1, static_cast<int>(500 * kStepSeconds / (thread_cpu_s() - start)));
  }
  void step() { do_passes(passes_); }
  [[nodiscard]] float result() const { return data_[7]; }

 private:
  void do_passes(int passes) {
    for (int pass = 0; pass < passes; ++pass) {
      for (float& each : data_) {
        each = each * 0.999F + 0.001F;
      }
    }
  }
  std::array<float, 32768> data_{};
  int passes_ = 0;
};

class Known final : public PendingScalars {
 public:
  Known() { scalars_.count = 3; }
  [[nodiscard]] Scalars read() const override { return scalars_; }

 private:
  Scalars scalars_;
};

// Counts events; takes 1 s for each one until `over` is set.
class Sleeper final : public EventSink {
 public:
  struct Seen {
    std::atomic<bool> over = false;
    std::int64_t steps = 0, merged = 0, others = 0;
  };
  explicit Sleeper(Seen& seen) : seen_(seen) {}
  void on(const Event& event) override {
    for (int i = 0; i < 100 && !seen_.over; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (const auto* step = std::get_if<StepFinished>(&event)) {
      ++seen_.steps;
      seen_.merged += step->merged;
    } else {
      ++seen_.others;
    }
  }

 private:
  Seen& seen_;
};

// The loop: works, and emits events if there is a bus.
class Loop {
 public:
  Loop() : scalars_(std::make_shared<Known>()) {}

  // CPU seconds of this thread.
  double block(io::EventBus* bus) {
    const double start = thread_cpu_s();
    for (int i = 0; i < kSteps; ++i) {
      work_.step();
      if (bus != nullptr) {
        emit(*bus);
      }
    }
    return thread_cpu_s() - start;
  }
  [[nodiscard]] std::int64_t steps() const { return step_; }
  [[nodiscard]] std::int64_t others() const { return others_; }
  [[nodiscard]] double emit_seconds() const { return emit_seconds_; }  // CPU time of this thread, so far
  [[nodiscard]] float result() const { return work_.result(); }

 private:
  void emit(io::EventBus& bus) {
    const double begun = thread_cpu_s();
    StepFinished event;
    event.step = ++step_;
    event.position = {0, step_};
    event.samples = 128;
    event.seconds = kStepSeconds;
    event.data_wait_seconds = 1e-5;
    event.lr = 0.1;
    event.memory_bytes = 1 << 20;
    event.scalars = scalars_;
    bus.emit(std::move(event));
    if (step_ % 100 == 0) {
      bus.emit(Evaluated{.position = {0, step_},
                         .step = step_,
                         .split = "val",
                         .metrics = {{"accuracy", 0.5, true}, {"loss", 1, false}},
                         .seconds = 1});
      ++others_;
    }
    emit_seconds_ += thread_cpu_s() - begun;
  }

  Work work_;
  std::shared_ptr<const PendingScalars> scalars_;
  std::int64_t step_ = 0, others_ = 0;
  double emit_seconds_ = 0;
};

RunStarted start(const std::string& folder) {
  RunStarted event;
  event.folder = folder;
  event.title = "a bench";
  event.scalars = {"loss", "grad_norm", "skipped"};
  event.epochs = 1;
  event.steps_per_epoch = event.last_step = 1'000'000;
  return event;
}

// A ratio minus its expected value, in per cent: median and 95 % interval.
std::string spread(const study::Ratio& ratio, double expected) {
  return fmt::format("{:+.2f} %, 95 % interval {:+.2f} to {:+.2f} %", 100 * (ratio.median - expected),
                     100 * (ratio.low - expected), 100 * (ratio.high - expected));
}

// Blocks with and without the bus take turns; the order alternates.
void compare(const std::string& title, Loop& loop, io::EventBus& bus, int pairs) {
  std::vector<double> withs, withouts, emits;  // seconds of CPU, one per pair
  for (int pair = 0; pair < pairs; ++pair) {
    double with = 0, without = 0;
    const double emitted = loop.emit_seconds();
    for (int turn = 0; turn < kTurns; ++turn) {
      const bool first = (pair + turn) % 2 == 0;
      (first ? with : without) += loop.block(first ? &bus : nullptr);
      (first ? without : with) += loop.block(first ? nullptr : &bus);
    }
    withs.push_back(with);
    withouts.push_back(without);
    emits.push_back(loop.emit_seconds() - emitted);
  }
  fmt::print(
      "{}: {} pairs of {} steps, each {:.3f} ms of CPU\n  steps with against without: {}\n"
      "  emit() as part of a step:   {}\n",
      title, pairs, kSteps * kTurns, 1000 * study::median_of(withouts) / kSteps / kTurns,
      spread(study::ratio_of(withs, withouts), 1), spread(study::ratio_of(emits, withouts), 0));
  if (std::isnan(loop.result())) {  // so that the work is not optimised away
    fmt::print("the work went wrong\n");
  }
  std::fflush(stdout);
}

void all_sinks(int pairs) {
  std::string folder = (std::filesystem::temp_directory_path() / "sinks-bench-XXXXXX").native();
  if (::mkdtemp(folder.data()) == nullptr) {
    throw std::runtime_error("cannot create a temporary folder");
  }
  std::ofstream nowhere("/dev/null");
  io::ProgressOptions progress;
  progress.mode = io::ProgressMode::kTerminal;
  progress.out = &nowhere;
  Loop loop;
  {
    io::EventBus bus;
    bus.add(std::make_unique<io::MetricsCsv>(folder), true);
    bus.add(std::make_unique<io::MetricsJsonl>(folder), true);
    bus.add(std::make_unique<io::TensorBoardLog>(folder));
    bus.add(std::make_unique<io::ProgressLine>(progress));
    bus.emit(start(folder));
    compare("all sinks: metrics.csv, metrics.jsonl, TensorBoard, progress line on a terminal", loop, bus, pairs);
  }
  std::filesystem::remove_all(folder);
}

void sleeping_sink(int pairs) {
  Sleeper::Seen seen;
  Loop loop;
  {
    io::EventBus bus;
    bus.add(std::make_unique<Sleeper>(seen));
    bus.emit(start(""));
    compare("a sink that sleeps 1 s per event", loop, bus, pairs);
    seen.over = true;
  }
  fmt::print("  {} steps sent: {} delivered, {} merged into later ones; {} other events sent, {} delivered\n",
             loop.steps(), seen.steps, seen.merged, loop.others() + 1, seen.others);
}

}  // namespace

int main(int argc, char** argv) {
  const int pairs = argc > 1 ? std::stoi(argv[1]) : 60;
  all_sinks(pairs);
  sleeping_sink(pairs);
  return 0;
}
