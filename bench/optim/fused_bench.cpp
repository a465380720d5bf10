// SPDX-License-Identifier: Apache-2.0
// Compares Stoker's optimizer step, averages and clipping with LibTorch's C++ ones, which handle one tensor at a time:
//     fused_bench [PAIRS] [device=cpu|cuda] [intra_op=N]
// The sides take turns. Ratios are of thread CPU time on one thread of a CPU, otherwise of wall time. Prints how many
// times as long LibTorch takes, and the GB/s of the necessary bytes; a plain copy of 256 MiB gives the scale.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randn.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "bench_main.h"
#include "stoker/base/error.h"
#include "stoker/base/fmt.h"
#include "stoker/device/backend.h"
#include "stoker/job/process.h"
#include "stoker/models/registry.h"
#include "stoker/optim/clip.h"
#include "stoker/optim/ema.h"
#include "stoker/optim/optimizer.h"
#include "stoker/study/paired.h"
#include "stream.h"

namespace stoker::bench {
namespace {

constexpr int kSkipped = 77;  // exit code if this machine lacks the device

using Shape = std::vector<std::int64_t>;

struct Shapes {
  std::string name;
  std::vector<Shape> all;
  void add(std::initializer_list<Shape> more) { all.insert(all.end(), more); }
};

// Perceptrons for tables, with norms: so small that a call costs more than its arithmetic.
Shapes perceptrons() {
  Shapes shapes{"200 tensors of table networks (width 32)", {}};
  for (int i = 0; i < 50; ++i) {
    shapes.add({Shape{32, 32}, Shape{32}, Shape{32}, Shape{32}});
  }
  return shapes;
}

// 66 convolutions with 32 channels and their norms, and a head.
Shapes residual_blocks() {
  Shapes shapes{"200 tensors of a narrow ResNet (width 32)", {}};
  for (int block = 0; block < 66; ++block) {
    shapes.add({Shape{32, 32, 3, 3}, Shape{32}, Shape{32}});
  }
  shapes.add({Shape{10, 32}, Shape{10}});
  return shapes;
}

// 16 layers of width 256, embeddings, and three norms.
Shapes transformer() {
  constexpr std::int64_t w = 256;
  Shapes shapes{"200 tensors of a GPT (width 256, 16 layers)", {Shape{512, w}, Shape{256, w}}};
  for (int layer = 0; layer < 16; ++layer) {
    shapes.add({Shape{w}, Shape{w}, Shape{w, 3 * w}, Shape{3 * w}, Shape{w, w}, Shape{w}});
    shapes.add({Shape{w}, Shape{w}, Shape{w, 4 * w}, Shape{4 * w}, Shape{4 * w, w}, Shape{w}});
  }
  shapes.add({Shape{w}, Shape{w}, Shape{w}, Shape{w}, Shape{w}, Shape{w}});
  return shapes;
}

Shapes resnet50() {
  Shapes shapes{"161 tensors of ResNet-50", {}};
  const auto network = models::make_network("resnet50", {.classes = 1000, .image_size = 64});
  for (const core::Parameter& parameter : network->parameters()) {
    shapes.all.push_back(parameter.tensor.sizes().vec());
  }
  return shapes;
}

// Parameters with gradients; the same values each time.
std::vector<core::Parameter> make_parameters(const Shapes& shapes, c10::Device device) {
  std::vector<core::Parameter> parameters;
  for (const Shape& shape : shapes.all) {
    at::Tensor value = at::randn(shape).mul_(0.1).to(device).set_requires_grad(true);
    value.mutable_grad() = at::randn(shape).to(device);
    parameters.push_back({fmt::format("p{}", parameters.size()), value, core::Role::kLinear});
  }
  return parameters;
}

std::vector<at::Tensor> tensors_of(const std::vector<core::Parameter>& parameters) {
  std::vector<at::Tensor> tensors;
  for (const core::Parameter& parameter : parameters) {
    tensors.push_back(parameter.tensor);
  }
  return tensors;
}

// Gradients, and a limit that is 1 % below their norm in each call, so that both sides clip every time (within the
// limit Stoker would skip the division). The gradients are restored from a copy every thousand calls, long before the
// numbers get too small.
class Shrinking {
 public:
  explicit Shrinking(std::vector<at::Tensor> grads)
      : grads_(std::move(grads)), norm_(optim::gradient_norm(grads_).item<double>()) {
    for (const at::Tensor& grad : grads_) {
      copies_.push_back(grad.clone());
    }
  }
  // For the next call.
  double limit() {
    if (calls_++ % 1000 == 0) {
      for (std::size_t i = 0; i < grads_.size(); ++i) {
        grads_[i].copy_(copies_[i]);
      }
      limit_ = norm_;
    }
    return limit_ *= 0.99;
  }
  [[nodiscard]] const std::vector<at::Tensor>& grads() const { return grads_; }

 private:
  std::vector<at::Tensor> grads_, copies_;
  double norm_, limit_ = 0;
  std::int64_t calls_ = 0;
};

study::Clock clock_for(c10::Device device) {
  return device.is_cpu() && at::get_num_threads() == 1 ? study::Clock::kThreadCpu : study::Clock::kWall;
}

class Bench {
 public:
  Bench(const Shapes& shapes, c10::Device device, int pairs)
      : device_(device),
        pairs_(pairs),
        ours_(make_parameters(shapes, device)),
        theirs_(make_parameters(shapes, device)) {
    for (const core::Parameter& parameter : ours_) {
      numbers_ += parameter.tensor.numel();
    }
    fmt::print("{}, {:.2f} million numbers\n", shapes.name, static_cast<double>(numbers_) * 1e-6);
  }

  // Steps without and with clipping. Stoker's kernel applies the factor; LibTorch multiplies the gradients in an extra
  // pass before its kernel.
  void adamw() {
    const auto fused = optim::make_optimizer({.name = "adamw", .weight_decay = 0.01}, ours_);
    torch::optim::AdamW plain(tensors_of(theirs_), torch::optim::AdamWOptions(1e-6).weight_decay(0.01));
    steps("adamw", {.reads = 4, .writes = 3}, *fused, plain);
  }
  void sgd() {
    const auto fused =
        optim::make_optimizer({.name = "sgd", .weight_decay = 1e-4, .momentum = 0.9, .nesterov = true}, ours_);
    torch::optim::SGD plain(tensors_of(theirs_),
                            torch::optim::SGDOptions(1e-6).momentum(0.9).weight_decay(1e-4).nesterov(true));
    steps("sgd, Nesterov", {.reads = 3, .writes = 2}, *fused, plain);
  }
  void averages() {
    optim::Ema ema(ours_, {}, 0.999);
    std::vector<at::Tensor> plain;
    for (const core::Parameter& parameter : theirs_) {
      plain.push_back(parameter.tensor.detach().clone());
    }
    compare(
        "ema", {.reads = 2, .writes = 1}, [&] { ema.update(); },
        [&] {
          const at::NoGradGuard no_grad;
          for (std::size_t i = 0; i < plain.size(); ++i) {
            plain[i].lerp_(theirs_[i].tensor, 0.001);
          }
        });
  }

 private:
  using Call = std::function<void()>;

  void steps(const std::string& name, Traffic traffic, optim::Optimizer& fused, torch::optim::Optimizer& plain) {
    const Call bare = [&] { fused.step(1e-6); }, plain_bare = [&] { plain.step(); };
    compare(name, traffic, bare, plain_bare);
    const std::vector<at::Tensor> values = tensors_of(theirs_);
    Shrinking mine(optim::gradients(ours_)), others(optim::gradients(theirs_));
    const Call clipped = [&] {
      const at::Tensor norm = optim::gradient_norm(mine.grads());
      fused.step(1e-6, {}, optim::clip_divisor(norm, mine.limit()));
    };
    const Call plain_clipped = [&] {
      torch::nn::utils::clip_grad_norm_(values, others.limit());
      plain.step();
    };
    traffic.writes = traffic.reads;  // the divided gradients
    traffic.reads_one = true;
    compare("  clipped", traffic, clipped, plain_clipped);
    const double ours = added(clipped, bare), theirs = added(plain_clipped, plain_bare);
    fmt::print("    clipping adds {:8.1f} us, LibTorch {:9.1f} us: {:5.2f} times\n", ours * 1e6, theirs * 1e6,
               theirs / ours);
  }

  [[nodiscard]] study::Paired in_turns(const Call& first, const Call& second) const {
    const auto finish = [this] { device::backend_for(device_).synchronize(device_); };
    study::PairingOptions options;
    options.least_pairs = options.most_pairs = pairs_;
    options.block_seconds = 0.02;
    options.clock = clock_for(device_);
    return study::time_in_turns({first, finish}, {second, finish}, options);
  }
  // By how many seconds the first takes longer than the second.
  [[nodiscard]] double added(const Call& first, const Call& second) const {
    const study::Paired paired = in_turns(first, second);
    return paired.first_seconds - paired.second_seconds;
  }

  void compare(const std::string& what, const Traffic& traffic, const Call& ours, const Call& theirs) const {
    const study::Paired paired = in_turns(theirs, ours);
    const int bytes = 4 * (traffic.reads + traffic.writes + (traffic.reads_one ? 1 : 0));
    fmt::print("  {:14} {:9.1f} us, LibTorch {:9.1f} us: {:5.2f} times ({:.2f} to {:.2f}), {} pairs; {:5.1f} GB/s",
               what, paired.second_seconds * 1e6, paired.first_seconds * 1e6, paired.ratio.median, paired.ratio.low,
               paired.ratio.high, paired.ratio.pairs,
               1e-9 * bytes * static_cast<double>(numbers_) / paired.second_seconds);
    if (device_.is_cpu() && at::get_num_threads() == 1) {
      Stream stream(numbers_, traffic);
      const study::Paired limit = in_turns(ours, [&] { stream.run(); });
      fmt::print(", {:.2f} ({:.2f} to {:.2f}) of a plain loop's time", limit.ratio.median, limit.ratio.low,
                 limit.ratio.high);
    }
    fmt::print("\n");
    std::fflush(stdout);
  }

  c10::Device device_;
  int pairs_;
  std::int64_t numbers_ = 0;
  std::vector<core::Parameter> ours_, theirs_;
};

// GB/s (bytes read and written) of copies of 256 MiB, larger than any cache; by the same clock as the other figures.
double copy_speed(c10::Device device) {
  constexpr std::int64_t kNumbers = 64 << 20;
  const at::Tensor from = at::randn({kNumbers}).to(device);
  at::Tensor to = from.clone();
  const study::Side copy{[&] { to.copy_(from); }, [&] { device::backend_for(device).synchronize(device); }};
  return 8e-9 * kNumbers / study::time_in_turns(copy, copy, {.seconds = 1, .clock = clock_for(device)}).first_seconds;
}

int run(int argc, char** argv) {
  job::start_process();
  int pairs = 30, threads = 1;
  std::string wanted = "cpu";
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("device=")) {
      wanted = argument.substr(7);
    } else if (argument.starts_with("intra_op=")) {
      threads = std::stoi(argument.substr(9));
    } else {
      pairs = std::stoi(argument);
    }
  }
  const c10::Device device(wanted);
  if (device::find_backend(device.type()) == nullptr) {
    fmt::print("SKIPPED: no CUDA: {}\n", device::missing_reason(device.type()));
    return kSkipped;
  }
  at::set_num_threads(threads);
  fmt::print(
      "Stoker against torch::optim, torch::nn::utils::clip_grad_norm_ and a loop of lerp_, {}, {} intra-op threads.\n"
      "In brackets: 95 % interval of the median. A copy of 256 MiB moves {:.1f} GB/s.\n\n",
      device.str(), threads, copy_speed(device));
  for (const Shapes& shapes : {perceptrons(), residual_blocks(), transformer(), resnet50()}) {
    Bench bench(shapes, device, pairs);
    bench.adamw();
    bench.sgd();
    bench.averages();
  }
  return 0;
}

}  // namespace
}  // namespace stoker::bench

int main(int argc, char** argv) { return stoker::bench::bench_main("fused_bench", stoker::bench::run, argc, argv); }
