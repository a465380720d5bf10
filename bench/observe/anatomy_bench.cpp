// SPDX-License-Identifier: Apache-2.0
// What the anatomy of a step costs on the training thread:
//     anatomy_bench [PAIRS]
// prints the cost of each part, and of all together in the step of a tiny perceptron: Stoker's loop with and without
// them, in turns in one process.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "bench_main.h"
#include "stoker/base/clock.h"
#include "stoker/core/phase.h"
#include "stoker/observe/anatomy/step_anatomy.h"
#include "stoker/observe/mark.h"
#include "stoker/study/paired.h"
#include "train/step_case.h"
#include "train/step_loops.h"

namespace stoker::bench {
namespace {

class Nobody final : public core::EventEmitter, public core::BatchSource {
 public:
  void emit(core::Event) override {}
  [[nodiscard]] std::optional<core::Batch> next() override { return std::nullopt; }
};

class Counter final : public core::PhaseListener {
 public:
  void entered(core::Phase) noexcept override { ++count; }
  std::int64_t count = 0;
};

// Microseconds of CPU per call: the fastest of several turns.
template <typename Work>
double us_of(const Work& work) {
  constexpr int kTurns = 15, kCalls = 20'000;
  double best = 1e9;
  for (int turn = 0; turn < kTurns; ++turn) {
    const double began = thread_cpu_s();
    for (int i = 0; i < kCalls; ++i) {
      work();
    }
    best = std::min(best, (thread_cpu_s() - began) / kCalls * 1e6);
  }
  return best;
}

void change() { const core::PhaseScope phase(core::Phase::kForward); }  // two changes

// Of a step of the loop.
std::int64_t changes_per_step() {
  StepCase made = make_case({});
  const auto loop = make_stoker_loop(made);
  loop->run(20);
  Counter counter;
  constexpr std::int64_t kSteps = 100;
  loop->run(kSteps, [&] {
    core::t_book->listen(&counter);
    return true;
  });
  return counter.count / kSteps;
}

void parts(std::int64_t changes) {
  core::PhaseBook book;
  Nobody nobody;
  observe::StepAnatomy anatomy(nobody, nobody);
  book.open();
  const double one = us_of(change) / 2;
  book.probe(true);
  const double probed = us_of(change) / 2 - one;
  book.probe(false);
  std::int64_t step = 0;
  const double usage = us_of([] { (void)observe::thread_usage(); });
  const double after = us_of([&] {
    book.settle();
    anatomy.step_done(book, ++step);
    book.probe(false);
  });
  const double mark = us_of([] { const auto stage = observe::mark("a stage"); });
  const auto each = static_cast<double>(changes);
  constexpr double kProbedSteps = 1.0 / 16;
  const auto row = [](const std::string& name, double us) { fmt::print("  {:<66} {:7.2f} us\n", name, us); };
  fmt::print("CPU of the training thread per step, each part alone in a loop\n");
  row(fmt::format("{} changes of phase, {:.0f} ns each", changes, one * 1e3), one * each);
  row(fmt::format("CPU time at each change in one step of 16, {:.0f} ns each", probed * 1e3),
      probed * each * kProbedSteps);
  row("the step's quantiles and the look for outliers", after - usage);
  row("faults and switches, from the kernel", usage);
  row("all", one * each + probed * each * kProbedSteps + after);
  row("a mark in user code", mark);
}

void whole(int pairs) {
  constexpr std::int64_t kRun = 500;  // steps per call
  StepCase made = make_case({});
  bool anatomy = true;
  const auto loop = make_stoker_loop(made, &anatomy);  // the same on both sides: two would differ in their memory
  const auto side = [&](bool on) {
    return study::Side{[&loop, &anatomy, on] {
      anatomy = on;
      loop->run(kRun);
    }};
  };
  study::PairingOptions options;
  options.least_pairs = options.most_pairs = pairs;
  options.block_seconds = 0.1;
  fmt::print("\nmlp 64-64-64-10, batch 32, sgd, 1 thread: a step with the anatomy against one without\n");
  for (const auto& [clock, name] : {std::pair{study::Clock::kThreadCpu, "CPU of the thread"},
                                    std::pair{study::Clock::kWall, "wall time        "}}) {
    options.clock = clock;
    const study::Paired paired = study::time_in_turns(side(true), side(false), options);
    const double us = paired.second_seconds * 1e6 / kRun;
    const auto [ratio, low, high, count] = paired.ratio;
    fmt::print("  {}: {:.1f} us without; {:+.1f} us ({:+.1f} to {:+.1f}), {} pairs\n", name, us, (ratio - 1) * us,
               (low - 1) * us, (high - 1) * us, count);
  }
}

int run(int argc, char** argv) {
  at::set_num_threads(1);
  parts(changes_per_step());
  whole(argc > 1 ? std::max(1, std::atoi(argv[1])) : 30);
  return 0;
}

}  // namespace
}  // namespace stoker::bench

int main(int argc, char** argv) { return stoker::bench::bench_main("anatomy_bench", stoker::bench::run, argc, argv); }
