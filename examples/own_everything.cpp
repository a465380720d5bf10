// SPDX-License-Identifier: Apache-2.0
// Your own model, data source and loss in a whole run: plan, timed trials, checkpoints, exact resume, report. 40
// lines of code.
//
//     own_everything [key=value ...]      options of `stoker train`; run=NAME: the run folder
//
// The model learns y = sin(3 x) from points that are drawn on demand. Each point depends only on (seed, epoch, sample).
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <stoker/stoker.h>

using namespace stoker;

class Net final : public core::Trainable {  // [B, 2] → tanh of 32 → [B, 1]; the second input is 1
 public:
  explicit Net(std::uint64_t seed) {
    at::manual_seed(seed);
    parameters_ = {{"hidden", at::randn({2, 32}).requires_grad_()}, {"out", at::randn({32, 1}).requires_grad_()}};
  }
  const std::vector<core::Parameter>& parameters() const override { return parameters_; }
  core::TensorList inputs(const core::Batch& batch) const override { return {batch["x"]}; }
  core::TensorList forward_segment(int, core::TensorList x) override {
    return {x[0].matmul(parameters_[0].tensor).tanh().matmul(parameters_[1].tensor)};
  }
  core::LossTerms loss(const core::TensorList& y, const core::Batch& batch) const override {
    return {{"loss", 1, y[0].sub(batch["y"]).square().sum()}};
  }

 private:
  std::vector<core::Parameter> parameters_;
};

std::vector<core::NamedTensor> draw_point(tasks::Split, std::int64_t, CounterRng random) {
  const double x = random.uniform(-1, 1);
  return {{"x", at::tensor({x, 1.0}, at::kFloat)}, {"y", at::tensor({std::sin(3 * x)}, at::kFloat)}};
}

int main(int argc, char** argv) try {
  job::start_process();
  tasks::OwnTask own{.name = "sine", .model = [](std::uint64_t seed) { return std::make_unique<Net>(seed); }};
  own.sample = draw_point;
  own.train_samples = 2000, own.val_samples = 200;
  tasks::add_own_task(std::move(own));
  std::vector<std::string> words{"task=sine", "data=points", "run=own-everything", "lr=0.01", "epochs=20"};
  words.insert(words.end(), argv + 1, argv + argc);
  job::Job job = job::Job::prepare(job::make_request({}, words), [](const std::string&) {});
  const job::Outcome outcome = job.train({}, /*stop=*/false);
  fmt::print("loss {:.4f} after {} steps\n", outcome.best.front().value, outcome.step);
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
