// SPDX-License-Identifier: Apache-2.0
// Measures the training step of Stoker or of the bare LibTorch loop on demand. bench/peers/speed.py runs it in turns
// with bench/peers/step_peer.py, its counterpart for Python systems.
//     step_worker stoker|bare MODEL BATCH SIZE PRECISION THREADS [DEVICE]
// Each line of standard input is a request in JSON, answered by one line. {"steps": N}: the milliseconds per step (the
// median on a CPU; on a GPU the mean, after a final synchronize) and the mean CPU time of the thread. {"bytes": true}:
// the peak tensor bytes, from making model and batch through three steps. Exits with 77 without the device.
#include <ATen/Parallel.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "bench_main.h"
#include "step_loops.h"
#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/base/fmt.h"
#include "stoker/device/backend.h"
#include "stoker/device/tensor_bytes.h"
#include "stoker/job/process.h"
#include "stoker/study/paired.h"

namespace stoker::bench {
namespace {

// A loop and its case.
class Measured {
 public:
  Measured(const CaseOptions& options, bool bare)
      : case_(make_case(options)), loop_(bare ? make_bare_loop(case_) : make_stoker_loop(case_)) {}

  void run(std::int64_t steps) { loop_->run(steps); }

  // Milliseconds per step: from the start of a step to the start of the next, and the mean CPU time of this thread.
  nlohmann::json times(std::int64_t steps) {
    std::vector<double> begun, wall;
    const double cpu = thread_cpu_s();
    loop_->run(steps + 1, [&] {
      begun.push_back(1e3 * now_s());
      return static_cast<std::int64_t>(begun.size()) <= steps;
    });
    const double spent = 1e3 * (thread_cpu_s() - cpu);
    const auto count = static_cast<double>(steps);
    if (!case_.options.device.is_cpu()) {  // the starts are those when the work was queued
      device::backend_for(case_.options.device).synchronize(case_.options.device);
      return {{"wall", (1e3 * now_s() - begun.front()) / count}, {"cpu", spent / count}};
    }
    for (std::size_t i = 1; i < begun.size(); ++i) {
      wall.push_back(begun[i] - begun[i - 1]);
    }
    return {{"wall", study::median_of(wall)}, {"cpu", spent / count}};
  }

 private:
  StepCase case_;
  std::unique_ptr<Loop> loop_;
};

std::int64_t peak_bytes(const CaseOptions& options, bool bare) {
  const device::TensorBytes bytes(options.device);
  Measured measured(options, bare);
  measured.run(3);
  return bytes.peak();
}

int serve(int argc, char** argv) {
  if (argc != 7 && argc != 8) {
    fail<ConfigError>("bench.step_worker",
                      "expected six or seven arguments; see the comment at the top of step_worker.cpp");
  }
  job::start_process();
  const bool bare = std::string_view(argv[1]) == "bare";
  CaseOptions options;
  options.model = argv[2];
  options.batch = std::stoll(argv[3]);
  options.size = std::stoll(argv[4]);
  options.precision = argv[5];
  options.device = c10::Device(argc == 8 ? argv[7] : "cpu");
  if (device::find_backend(options.device.type()) == nullptr) {
    fmt::print(stderr, "SKIPPED: no CUDA: {}\n", device::missing_reason(options.device.type()));
    return 77;
  }
  at::set_num_threads(std::stoi(argv[6]));
  std::unique_ptr<Measured> measured;
  for (std::string line; std::getline(std::cin, line);) {
    const auto request = nlohmann::json::parse(line);
    nlohmann::json answer;
    if (request.contains("bytes")) {
      answer = {{"bytes", peak_bytes(options, bare)}};
    } else {
      if (!measured) {
        measured = std::make_unique<Measured>(options, bare);
      }
      answer = measured->times(request.at("steps"));
    }
    fmt::print("{}\n", answer.dump());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace stoker::bench

int main(int argc, char** argv) { return stoker::bench::bench_main("step_worker", stoker::bench::serve, argc, argv); }
