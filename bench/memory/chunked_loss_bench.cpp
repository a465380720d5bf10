// SPDX-License-Identifier: Apache-2.0
// Memory and time of the loss of a language model, forward and backward: logits of all tokens at once (linear and
// cross_entropy_sum) against ops::linear_cross_entropy_sum with several sizes of chunks:
//     chunked_loss_bench [ROUNDS] [tokens=N] [width=N] [vocabulary=N] [device=cpu|cuda] [intra_op=N]
// All ways take turns in each round. Times are ratios to the plain way of the same round (CPU time of the thread on one
// thread of a CPU, otherwise wall time). Bytes are the peak of tensors above inputs and the two gradients, which any
// way leaves. Exits with 1 if the loss or a gradient differs from the plain one by more than rounding.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench_main.h"
#include "stoker/base/clock.h"
#include "stoker/base/fmt.h"
#include "stoker/device/backend.h"
#include "stoker/device/tensor_bytes.h"
#include "stoker/job/process.h"
#include "stoker/ops/cross_entropy.h"
#include "stoker/ops/linear_cross_entropy.h"
#include "stoker/study/paired.h"
#include "turns.h"

namespace stoker::bench {
namespace {

constexpr std::int64_t kChunks[] = {0, 16, 32, 64, 128, 256};  // MiB of logits; 0: all at once; the default is 64
constexpr int kSkipped = 77;                                   // exit code if this machine lacks the device
// Largest difference of a sum; of a gradient, relative to its largest value. A GPU adds up in another order for each
// size of a matrix, so there the difference may be a few times the CPU's.
constexpr double kRounding = 1e-6, kRoundingOnGpu = 1e-5;

struct Sizes {
  std::int64_t tokens, width, vocabulary;
};
// A step of GPT-2, a quarter of it, and a smaller vocabulary.
constexpr Sizes kCases[] = {{2048, 768, 50257}, {512, 768, 50257}, {8192, 384, 16384}};

struct Way {
  std::int64_t chunk;  // tokens; 0: all at once
  double bytes = 0, difference = 0;
  std::vector<double> seconds = {};
};

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

class Comparison {
 public:
  Comparison(const Sizes& sizes, c10::Device device)
      : device_(device),
        hidden_(at::randn({sizes.tokens, sizes.width}).to(device).set_requires_grad(true)),
        table_(at::randn({sizes.vocabulary, sizes.width}).mul_(0.02).to(device).set_requires_grad(true)),
        target_(at::randint(sizes.vocabulary, {sizes.tokens}, at::kLong).to(device)) {
    for (const std::int64_t chunk : kChunks) {
      ways_.push_back({(chunk << 20) / (4 * sizes.vocabulary)});
    }
  }

  void run(int rounds) {
    for (Way& way : ways_) {  // also warms up
      measure_bytes(way);
    }
    take_turns(ways_, rounds, [this](const Way& way) { return time_pass(way); });
  }

  void print() const {
    const Way& plain = ways_.front();
    fmt::print("  {:12} {:>18} {:>9} {:>18} {:>42} {:>11}\n", "chunk", "peak of the loss", "seconds", "(least, most)",
               "time against all at once", "difference");
    for (const Way& way : ways_) {
      const auto [least, most] = std::ranges::minmax(way.seconds);
      fmt::print("  {:12} {:8.0f} MB {:+5.1f} % {:9.3f} {:>18} {:>42} {:>11}\n",
                 way.chunk == 0 ? "all" : fmt::format("{} tokens", way.chunk), way.bytes / 1e6,
                 100 * (way.bytes / plain.bytes - 1), study::median_of(way.seconds),
                 fmt::format("({:.3f}, {:.3f})", least, most), time_against(way.seconds, plain.seconds),
                 fmt::format("{:.1e}", way.difference));
    }
  }

  [[nodiscard]] bool agree() const {
    const double limit = device_.is_cpu() ? kRounding : kRoundingOnGpu;
    return std::ranges::all_of(ways_, [limit](const Way& way) { return way.difference <= limit; });
  }

 private:
  at::Tensor pass(std::int64_t chunk) {
    const at::Tensor loss = chunk == 0 ? ops::cross_entropy_sum(at::linear(hidden_, table_), target_)
                                       : ops::linear_cross_entropy_sum(hidden_, table_, target_, chunk);
    const at::Tensor mean = loss / static_cast<double>(target_.size(0));
    mean.backward();
    return mean.detach();
  }
  void drop_gradients() {
    hidden_.mutable_grad().reset();
    table_.mutable_grad().reset();
  }
  void measure_bytes(Way& way) {
    {
      const device::TensorBytes counted(device_);
      const at::Tensor loss = pass(way.chunk);
      way.bytes = static_cast<double>(counted.peak()) - static_cast<double>(hidden_.grad().nbytes()) -
                  static_cast<double>(table_.grad().nbytes());
      if (way.chunk == 0) {
        loss_ = loss;
        hidden_gradient_ = hidden_.grad();
        table_gradient_ = table_.grad();
      } else {
        way.difference =
            std::max({largest_difference(loss, loss_), largest_difference(hidden_.grad(), hidden_gradient_),
                      largest_difference(table_.grad(), table_gradient_)});
      }
    }
    drop_gradients();
  }
  double time_pass(const Way& way) {
    const bool one_thread = device_.is_cpu() && at::get_num_threads() == 1;
    const device::Backend& backend = device::backend_for(device_);
    const auto now = [&] { return one_thread ? thread_cpu_s() : now_s(); };
    backend.synchronize(device_);
    const double start = now();
    (void)pass(way.chunk);
    backend.synchronize(device_);
    const double seconds = now() - start;
    drop_gradients();
    return seconds;
  }

  c10::Device device_;
  at::Tensor hidden_, table_, target_;
  at::Tensor loss_, hidden_gradient_, table_gradient_;  // of the plain way
  std::vector<Way> ways_;
};

bool compare(const Sizes& sizes, int rounds, c10::Device device) {
  fmt::print("\n{} tokens, width {}, vocabulary {}, fp32; all logits: {:.0f} MB\n", sizes.tokens, sizes.width,
             sizes.vocabulary, static_cast<double>(sizes.tokens * sizes.vocabulary) * 4e-6);
  Comparison comparison(sizes, device);
  comparison.run(rounds);
  comparison.print();
  std::fflush(stdout);
  return comparison.agree();
}

int run(int argc, char** argv) {
  job::start_process();
  int rounds = 5, threads = 1;
  Sizes own = kCases[0];
  bool has_own = false;
  std::string device_name = "cpu";
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::string key = argument.substr(0, argument.find('=')), value = argument.substr(argument.find('=') + 1);
    if (key == "intra_op") {
      threads = std::stoi(value);
    } else if (key == "device") {
      device_name = value;
    } else if (key == "tokens" || key == "width" || key == "vocabulary") {
      (key == "tokens" ? own.tokens : key == "width" ? own.width : own.vocabulary) = std::stoll(value);
      has_own = true;
    } else {
      rounds = std::stoi(argument);
    }
  }
  const c10::Device device(device_name);
  if (device::find_backend(device.type()) == nullptr) {
    fmt::print("SKIPPED: {}\n", device::missing_reason(device.type()));
    return kSkipped;
  }
  at::set_num_threads(threads);
  fmt::print("{}, {}, {} threads per operator, {} rounds\n", job::version_text(), device.str(), threads, rounds);
  bool agree = true;
  for (const Sizes& sizes : has_own ? std::vector{own} : std::vector(std::begin(kCases), std::end(kCases))) {
    agree = compare(sizes, rounds, device) && agree;
  }
  if (!agree) {
    fmt::print("FAILED: a loss or gradient differs by more than rounding does\n");
  }
  return agree ? 0 : 1;
}

}  // namespace
}  // namespace stoker::bench

int main(int argc, char** argv) {
  return stoker::bench::bench_main("chunked_loss_bench", stoker::bench::run, argc, argv);
}
