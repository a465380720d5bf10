// SPDX-License-Identifier: Apache-2.0
// Memory and time of a forward and backward pass with recomputation, of a BERT-base encoder and ResNet-50:
//     recompute_bench [ROUNDS] [case=NAME] [rows=N] [device=cpu|cuda] [intra_op=N]
// All choices of recompute= take turns in each round. Times are ratios to the plain pass of the same round (CPU time of
// the thread on one thread of a CPU, otherwise wall time). Bytes are those of tensors, without scratch memory of
// libraries: activations that the forward pass leaves and their peak (not counting weights and gradients, with tables
// of embeddings frozen, because their gradient is one large block at the very end); and the peak with weights and
// gradients, which each pass makes anew, as a step does.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench_main.h"
#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/base/fmt.h"
#include "stoker/device/backend.h"
#include "stoker/device/tensor_bytes.h"
#include "stoker/job/process.h"
#include "stoker/memory/recompute.h"
#include "stoker/models/encoder.h"
#include "stoker/models/resnet.h"
#include "stoker/study/paired.h"
#include "turns.h"

namespace stoker::bench {
namespace {

constexpr int kSkipped = 77;  // exit code if this machine lacks the device

// A network without a task.
class Chain final : public core::Trainable {
 public:
  explicit Chain(std::unique_ptr<models::Network> network) : network_(std::move(network)) {}
  [[nodiscard]] const std::vector<core::Parameter>& parameters() const override { return network_->parameters(); }
  [[nodiscard]] core::TensorList norm_buffers() const override { return network_->norm_buffers(); }
  [[nodiscard]] core::TensorList inputs(const core::Batch&) const override { return {}; }
  [[nodiscard]] int segments() const override { return network_->segments(); }
  [[nodiscard]] std::string segment_name(int segment) const override { return network_->segment(segment).name; }
  [[nodiscard]] std::vector<std::string> inner_segments(int segment) const override {
    std::vector<std::string> names;
    for (const models::InnerSegment& each : network_->segment(segment).inner) {
      names.push_back(each.name);
    }
    return names;
  }
  [[nodiscard]] core::TensorList forward_segment(int segment, core::TensorList inputs) override {
    return network_->forward_segment(segment, std::move(inputs));
  }
  [[nodiscard]] core::TensorList forward_inner(int segment, int inner, core::TensorList inputs) override {
    return network_->segment(segment).inner.at(static_cast<std::size_t>(inner)).forward(std::move(inputs));
  }
  [[nodiscard]] bool draws(int segment) const override { return network_->segment(segment).draws; }
  [[nodiscard]] core::LossTerms loss(const core::TensorList&, const core::Batch&) const override { return {}; }

 private:
  std::unique_ptr<models::Network> network_;
};

struct Case {
  std::string name, text;
  std::int64_t rows;
  std::function<std::unique_ptr<models::Network>()> network;
  std::function<at::Tensor(std::int64_t rows)> input;
  std::vector<std::string> choices;  // beside none
};

std::unique_ptr<models::Network> bert(double dropout) {
  return models::make_encoder(
      {.vocabulary = 30522, .context = 128, .layers = 12, .heads = 12, .width = 768, .classes = 2, .dropout = dropout});
}

std::vector<Case> cases() {
  const auto tokens = [](std::int64_t rows) { return at::randint(30522, {rows, 128}, at::kLong); };
  const std::vector<std::string> of_bert{"all", "every:2", "attention,mlp.gelu", "attention.heads,mlp.gelu"};
  return {{"bert", "BERT-base, 12 layers, width 768, 128 tokens, dropout 0.1", 4, [] { return bert(0.1); }, tokens,
           of_bert},
          {"bert-no-dropout", "the same without dropout", 4, [] { return bert(0); }, tokens, of_bert},
          {"resnet50",
           "ResNet-50, 224 pixels, a segment per block",
           8,
           [] { return models::make_resnet50({.classes = 1000, .image_size = 224}); },
           [](std::int64_t rows) {
             return at::randn({rows, 3, 224, 224}).contiguous(at::MemoryFormat::ChannelsLast);
           },
           {"all", "every:2", "layer1,layer2"}}};
}

class Comparison {
 public:
  Comparison(const Case& each, std::int64_t rows, c10::Device device) : model_(make(each, device)), device_(device) {
    input_ = each.input(rows).to(device);
    add("none");
    for (const std::string& choice : each.choices) {
      add(choice);
    }
    for (const core::Parameter& parameter : model_.parameters()) {
      weights_ += static_cast<double>(parameter.tensor.nbytes());
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
    fmt::print("  {:26} {:>18} {:>18} {:>18} {:>9} {:>42}\n", "recompute=", "left by forward", "peak", "total peak",
               "seconds", "time against none");
    for (const Way& way : ways_) {
      fmt::print("  {:26} {} {} {} {:9.2f} {:>42}\n", way.name, bytes(way.held, plain.held),
                 bytes(way.peak, plain.peak), bytes(way.total, plain.total), study::median_of(way.seconds),
                 time_against(way.seconds, plain.seconds));
    }
    std::fflush(stdout);
  }

 private:
  struct Way {
    std::string name;
    memory::RecomputePlan plan;
    double held = 0, peak = 0, total = 0;  // bytes
    std::vector<double> seconds = {};
  };

  static Chain make(const Case& each, c10::Device device) {
    auto network = each.network();
    network->to(device);
    network->set_training(true);
    return Chain(std::move(network));
  }
  void add(const std::string& choice) { ways_.push_back({choice, {model_, memory::parse_recompute(choice)}}); }
  static std::string bytes(double value, double plain) {
    return fmt::format("{:8.0f} MB {:+5.1f} %", value / 1e6, 100 * (value / plain - 1));
  }

  at::Tensor forward(const Way& way) { return way.plan.forward(model_, {input_}).at(0).sum(); }
  void set_gradients(bool zeros, bool tables) {
    for (const core::Parameter& parameter : model_.parameters()) {
      at::Tensor tensor = parameter.tensor;
      tensor.mutable_grad() = zeros ? at::zeros_like(tensor) : at::Tensor();
      tensor.set_requires_grad(tables || parameter.role != core::Role::kEmbedding);
    }
  }
  void measure_bytes(Way& way) {
    set_gradients(/*zeros=*/true, /*tables=*/false);
    {
      const device::TensorBytes counted(device_);
      const at::Tensor loss = forward(way);
      way.held = static_cast<double>(counted.held());
      loss.backward();
      way.peak = static_cast<double>(counted.peak());
    }
    set_gradients(/*zeros=*/false, /*tables=*/true);
    const device::TensorBytes counted(device_);
    forward(way).backward();
    way.total = weights_ + static_cast<double>(counted.peak());
    set_gradients(/*zeros=*/false, /*tables=*/true);
  }
  double time_pass(const Way& way) {
    const bool one_thread = device_.is_cpu() && at::get_num_threads() == 1;
    const auto now = [&] { return one_thread ? thread_cpu_s() : now_s(); };
    device::backend_for(device_).synchronize(device_);
    const double start = now();
    forward(way).backward();
    device::backend_for(device_).synchronize(device_);
    const double seconds = now() - start;
    set_gradients(/*zeros=*/false, /*tables=*/true);
    return seconds;
  }

  Chain model_;
  c10::Device device_;
  at::Tensor input_;
  double weights_ = 0;  // bytes
  std::vector<Way> ways_;
};

int run(int argc, char** argv) {
  job::start_process();
  int rounds = 5, threads = 1;
  std::int64_t rows = 0;
  std::string wanted, device_name = "cpu";
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::string value = argument.substr(argument.find('=') + 1);
    if (argument.starts_with("case=")) {
      wanted = value;
    } else if (argument.starts_with("rows=")) {
      rows = std::stoll(value);
    } else if (argument.starts_with("device=")) {
      device_name = value;
    } else if (argument.starts_with("intra_op=")) {
      threads = std::stoi(value);
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
  for (const Case& each : cases()) {
    if (!wanted.empty() && wanted != each.name) {
      continue;
    }
    const std::int64_t batch = rows > 0 ? rows : each.rows;
    fmt::print("\n{}: {}, batch {}, fp32\n", each.name, each.text, batch);
    Comparison comparison(each, batch, device);
    comparison.run(rounds);
    comparison.print();
  }
  return 0;
}

}  // namespace
}  // namespace stoker::bench

int main(int argc, char** argv) { return stoker::bench::bench_main("recompute_bench", stoker::bench::run, argc, argv); }
