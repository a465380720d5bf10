// SPDX-License-Identifier: Apache-2.0
// Memory and time of whole training steps (forward, backward, optimizer) with the optimizer after backward, and inside
// of it (optimizer_in_backward=on), alone and with recompute=all:
//     in_backward_bench [ROUNDS] [model=NAME] [batch=N] [intra_op=N]
// All ways take turns in each round. Times are ratios to the plain step of the same round (CPU time of the thread on
// one thread, otherwise wall time). Bytes are the peak of tensors above weights and moments: gradients, activations and
// what operators need meanwhile. Exits with 1 if the weights of two ways differ in a bit.
#include <ATen/Parallel.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "bench_main.h"
#include "stoker/base/clock.h"
#include "stoker/base/fmt.h"
#include "stoker/device/tensor_bytes.h"
#include "stoker/job/process.h"
#include "stoker/study/paired.h"
#include "stoker/study/tips/bench_model.h"
#include "stoker/train/step.h"
#include "turns.h"

namespace stoker::bench {
namespace {

struct Case {
  std::string model;
  std::int64_t batch;
};
// Models whose weights are small against their activations, and large.
const std::vector<Case> kCases = {{"gpt", 8}, {"gpt", 1}, {"gpt-50k", 1}, {"resnet18", 8}, {"resnet50", 2}};

class Way {
 public:
  std::vector<double> seconds;  // by round

  Way(const Case& each, std::string name, bool in_backward, const std::string& recompute)
      : name_(std::move(name)),
        bench_(study::make_bench_model(each.model, {.batch = each.batch})),
        optimizer_(optim::make_optimizer(bench_.optimizer, bench_.model->parameters())),
        step_({*bench_.model, *optimizer_, scaler_, ranks_},
              {.recompute = memory::parse_recompute(recompute), .optimizer_in_backward = in_backward}) {}

  void take() {
    step_.set_lr(bench_.lr);
    step_.compute(bench_.batch, number_++);
    step_.commit(bench_.lr);
  }
  void measure_bytes() {
    const device::TensorBytes counted(c10::kCPU);
    take();
    bytes_ = static_cast<double>(counted.peak());
  }
  double time_step() {
    const bool one_thread = at::get_num_threads() == 1;
    const auto now = [&] { return one_thread ? thread_cpu_s() : now_s(); };
    const double start = now();
    take();
    return now() - start;
  }
  [[nodiscard]] bool equals(const Way& other) const {
    const auto &mine = bench_.model->parameters(), &others = other.bench_.model->parameters();
    return std::ranges::equal(
        mine, others, [](const core::Parameter& a, const core::Parameter& b) { return a.tensor.equal(b.tensor); });
  }
  [[nodiscard]] double weights() const {
    double bytes = 0;
    for (const core::Parameter& each : bench_.model->parameters()) {
      bytes += static_cast<double>(each.tensor.nbytes());
    }
    return bytes;
  }
  void print(const Way& plain) const {
    fmt::print("  {:28} {:8.1f} MB {:+5.1f} % {:9.3f} {:>42}{}\n", name_, bytes_ / 1e6,
               100 * (bytes_ / plain.bytes_ - 1), study::median_of(seconds), time_against(seconds, plain.seconds),
               equals(plain) ? "" : "  DIFFERS");
  }

 private:
  std::string name_;
  study::BenchModel bench_;
  core::SingleRank ranks_;
  precision::GradScaler scaler_{{.scaling = false}, c10::kCPU};
  std::unique_ptr<optim::Optimizer> optimizer_;
  train::Step step_;
  std::int64_t number_ = 0;
  double bytes_ = 0;
};

bool compare(const Case& each, int rounds) {
  std::deque<Way> ways;
  ways.emplace_back(each, "after backward", false, "none");
  ways.emplace_back(each, "in backward", true, "none");
  ways.emplace_back(each, "after, recompute=all", false, "all");
  ways.emplace_back(each, "in backward, recompute=all", true, "all");
  for (Way& way : ways) {
    way.take();  // warms up
    way.measure_bytes();
  }
  take_turns(ways, rounds, [](Way& way) { return way.time_step(); });
  const Way& plain = ways.front();
  fmt::print("\n{}, batch {}: weights {:.1f} MB\n  {:28} {:>19} {:>9} {:>42}\n", each.model, each.batch,
             plain.weights() / 1e6, "optimizer", "peak of a step", "seconds", "time against after");
  bool agree = true;
  for (const Way& way : ways) {
    way.print(plain);
    agree = agree && way.equals(plain);
  }
  std::fflush(stdout);
  return agree;
}

int run(int argc, char** argv) {
  job::start_process();
  int rounds = 9, threads = 1;
  std::string model;
  std::int64_t batch = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::string value = argument.substr(argument.find('=') + 1);
    if (argument.starts_with("model=")) {
      model = value;
    } else if (argument.starts_with("batch=")) {
      batch = std::stoll(value);
    } else if (argument.starts_with("intra_op=")) {
      threads = std::stoi(value);
    } else {
      rounds = std::stoi(argument);
    }
  }
  at::set_num_threads(threads);
  fmt::print("{}, {} threads per operator, {} rounds\n", job::version_text(), threads, rounds);
  bool agree = true;
  for (const Case& each : model.empty() ? kCases : std::vector<Case>{{model, batch}}) {
    agree = compare(each, rounds) && agree;
  }
  return agree ? 0 : 1;
}

}  // namespace
}  // namespace stoker::bench

int main(int argc, char** argv) {
  return stoker::bench::bench_main("in_backward_bench", stoker::bench::run, argc, argv);
}
