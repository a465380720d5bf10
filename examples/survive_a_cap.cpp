// SPDX-License-Identifier: Apache-2.0
// A model of your own survives a memory limit: ten lines. A step that does not fit runs again in smaller microbatches,
// with the same batch and the same result as if it had been split from the start.
//
//     survive_a_cap [MIB]     MIB: what tensors may hold together, 24 by default; all of a batch would need about 70
#include <ATen/ops/randn.h>
#include <stoker/stoker.h>

#include <cstdlib>

namespace {

using namespace stoker;

class Net final : public core::Trainable {  // [B, 64] → tanh of 4096 → [B, 1]
 public:
  Net() {
    at::manual_seed(1);
    parameters_ = {{"hidden", (at::randn({64, 4096}) / 8).requires_grad_()},
                   {"out", (at::randn({4096, 1}) / 64).requires_grad_()}};
  }
  const std::vector<core::Parameter>& parameters() const override { return parameters_; }
  core::TensorList inputs(const core::Batch& batch) const override { return {batch["x"]}; }
  core::TensorList forward_segment(int, core::TensorList x) override {
    return {x[0].matmul(parameters_[0].tensor).tanh().matmul(parameters_[1].tensor)};
  }
  core::LossTerms loss(const core::TensorList& y, const core::Batch& batch) const override {
    return {{"loss", 1, y[0].sub(batch["x"].sum(1, true).sin()).square().sum()}};
  }

 private:
  std::vector<core::Parameter> parameters_;
};

core::Batch batch_of(const at::Tensor& points) {  // [B, 64]
  core::Batch batch({}, std::vector<std::int64_t>(static_cast<std::size_t>(points.size(0))));
  batch.set("x", points);
  return batch;
}

struct Print final : core::EventEmitter {
  void emit(core::Event event) override {
    if (const auto* fault = std::get_if<core::FaultSurvived>(&event)) {
      fmt::print("step {}: {}\n", fault->step, fault->text);
    }
  }
};

}  // namespace

int main(int argc, char** argv) try {
  job::start_process();
  const std::int64_t mib = argc > 1 ? std::atoll(argv[1]) : 24;
  Net net;
  Print print;
  const at::Tensor points = at::randn({10, 2048, 64});
  // The ten lines.
  device::backend_for(c10::kCPU).limit_memory(c10::kCPU, mib << 20);
  train::Step step(net, {.name = "sgd", .momentum = 0});
  train::Recovery recovery({.events = &print});
  for (std::int64_t number = 0; number < 10; ++number) {
    recovery.begin_step(number + 1);
    step.compute(batch_of(points[number]), number, recovery);
    step.commit(/*lr=*/0.01);
    recovery.step_done();
  }
  fmt::print("loss {:.4f} after 10 steps; microbatches {}\n", step.scalars()[0].item<float>(),
             memory::schedule_text(recovery.schedule()));
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
