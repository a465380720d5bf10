// SPDX-License-Identifier: Apache-2.0
// Stoker's optimizer step, averages and clipping beside LibTorch's C++ ones, which take each tensor by itself:
//     fused_bench [PAIRS] [device=cpu|cuda] [intra_op=N]
// Ratios of interleaved turns: of thread CPU time on one thread of a CPU, else of wall time. How many times as long
// LibTorch takes.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randn.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <string>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/base/fmt.h"
#include "stoker/device/backend.h"
#include "stoker/job/process.h"
#include "stoker/models/registry.h"
#include "stoker/optim/clip.h"
#include "stoker/optim/ema.h"
#include "stoker/optim/optimizer.h"
#include "stoker/study/paired.h"

namespace stoker::bench {
namespace {

constexpr int kSkipped = 77;  // exit code of a measurement that this machine has no device for

struct Shapes {
  std::string name;
  std::vector<std::vector<std::int64_t>> all;
};

// 66 convolutions of 32 channels with their norms, and a head.
Shapes residual_blocks() {
  Shapes shapes{"200 tensors of a narrow ResNet (width 32)", {}};
  for (int block = 0; block < 66; ++block) {
    shapes.all.insert(shapes.all.end(), {{32, 32, 3, 3}, {32}, {32}});
  }
  shapes.all.insert(shapes.all.end(), {{10, 32}, {10}});
  return shapes;
}

// 16 layers of width 256, embeddings, the last norm, and a head of its own with four layers more of norms.
Shapes transformer() {
  constexpr std::int64_t w = 256;
  Shapes shapes{"200 tensors of a GPT (width 256, 16 layers)", {{512, w}, {256, w}, {w}, {w}}};
  for (int layer = 0; layer < 16; ++layer) {
    shapes.all.insert(shapes.all.end(), {{w}, {w}, {w, 3 * w}, {3 * w}, {w, w}, {w}});
    shapes.all.insert(shapes.all.end(), {{w}, {w}, {w, 4 * w}, {4 * w}, {4 * w, w}, {w}});
  }
  shapes.all.insert(shapes.all.end(), {{w}, {w}, {w}, {w}});
  return shapes;
}

Shapes resnet50() {
  Shapes shapes{"161 tensors of ResNet-50", {}};
  for (const auto& parameter : models::make_network("resnet50", {.classes = 1000, .image_size = 64})->parameters()) {
    shapes.all.push_back(parameter.tensor.sizes().vec());
  }
  return shapes;
}

// Parameters with gradients; the same values each time.
std::vector<core::Parameter> make_parameters(const Shapes& shapes, c10::Device device) {
  std::vector<core::Parameter> parameters;
  for (const auto& shape : shapes.all) {
    at::Tensor value = at::randn(shape).mul_(0.1).to(device).set_requires_grad(true);
    value.mutable_grad() = at::randn(shape).to(device);
    parameters.push_back({fmt::format("p{}", parameters.size()), value, core::Role::kLinear, 0});
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

class Bench {
 public:
  Bench(const Shapes& shapes, c10::Device device, int pairs)
      : device_(device),
        pairs_(pairs),
        ours_(make_parameters(shapes, device)),
        theirs_(make_parameters(shapes, device)) {
    std::int64_t numbers = 0;
    for (const core::Parameter& parameter : ours_) {
      numbers += parameter.tensor.numel();
    }
    fmt::print("{}, {:.2f} million numbers\n", shapes.name, static_cast<double>(numbers) * 1e-6);
  }

  void adamw() {
    const auto fused = optim::make_optimizer({.name = "adamw", .weight_decay = 0.01}, ours_);
    torch::optim::AdamW plain(tensors_of(theirs_), torch::optim::AdamWOptions(1e-6).weight_decay(0.01));
    compare(
        "adamw", [&] { fused->step(1e-6); }, [&] { plain.step(); });
  }
  void sgd() {
    const auto fused =
        optim::make_optimizer({.name = "sgd", .weight_decay = 1e-4, .momentum = 0.9, .nesterov = true}, ours_);
    torch::optim::SGD plain(tensors_of(theirs_),
                            torch::optim::SGDOptions(1e-6).momentum(0.9).weight_decay(1e-4).nesterov(true));
    compare(
        "sgd, Nesterov", [&] { fused->step(1e-6); }, [&] { plain.step(); });
  }
  void averages() {
    optim::Ema ema(ours_, {}, 0.999);
    std::vector<at::Tensor> plain;
    for (const core::Parameter& parameter : theirs_) {
      plain.push_back(parameter.tensor.detach().clone());
    }
    compare(
        "ema", [&] { ema.update(); },
        [&] {
          const at::NoGradGuard no_grad;
          for (std::size_t i = 0; i < plain.size(); ++i) {
            plain[i].lerp_(theirs_[i].tensor, 0.001);
          }
        });
  }
  void clipping() {
    const std::vector<at::Tensor> values = tensors_of(theirs_);
    // Just above the limit from the second call on: both sides multiply each time.
    compare(
        "clipping", [&] { optim::clip_by_norm(optim::gradients(ours_), 1); },
        [&] { torch::nn::utils::clip_grad_norm_(values, 1); });
  }

 private:
  void compare(const std::string& what, const std::function<void()>& ours, const std::function<void()>& theirs) const {
    const auto finish = [this] { device::backend_for(device_).synchronize(device_); };
    study::PairingOptions options;
    options.least_pairs = options.most_pairs = pairs_;
    options.block_seconds = 0.02;
    const bool one_thread = device_.is_cpu() && at::get_num_threads() == 1;
    options.clock = one_thread ? study::Clock::kThreadCpu : study::Clock::kWall;
    const study::Paired paired = study::time_in_turns({theirs, finish}, {ours, finish}, options);
    fmt::print("  {:14} {:9.1f} us, LibTorch {:9.1f} us: {:5.2f} times ({:.2f} to {:.2f}), {} pairs\n", what,
               paired.second_seconds * 1e6, paired.first_seconds * 1e6, paired.ratio.median, paired.ratio.low,
               paired.ratio.high, paired.ratio.pairs);
    std::fflush(stdout);
  }

  c10::Device device_;
  int pairs_;
  std::vector<core::Parameter> ours_, theirs_;
};

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
      "Stoker beside torch::optim, torch::nn::utils::clip_grad_norm_ and a loop of lerp_, {}, {} intra-op threads.\n"
      "In brackets: holds the median with 95 %.\n\n",
      device.str(), threads);
  for (const Shapes& shapes : {residual_blocks(), transformer(), resnet50()}) {
    Bench bench(shapes, device, pairs);
    bench.adamw();
    bench.sgd();
    bench.averages();
    bench.clipping();
  }
  return 0;
}

}  // namespace
}  // namespace stoker::bench

int main(int argc, char** argv) {
  try {
    return stoker::bench::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "fused_bench: {}\n", error.what());
    return 2;
  }
}
