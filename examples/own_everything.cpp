// SPDX-License-Identifier: Apache-2.0
// Your own model, data source and loss in a whole run: plan, timed trials, checkpoints, exact resume, report.
//
//     own_everything [key=value ...]      options of `stoker train`; run=NAME: the run folder
//
// The model learns y = sin(3 x) from points that are drawn on demand. It implements core::Trainable, the data
// core::BatchSource; neither knows about runs. The code that connects them is marked "glue": 12 lines.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tanh.h>
#include <stoker/stoker.h>

namespace {
using namespace stoker;

class Net final : public core::Trainable {  // [B, 2] → tanh of 32 → [B, 1]; the second input is 1
 public:
  explicit Net(std::uint64_t seed) {
    at::manual_seed(seed);
    parameters_ = {{"hidden", at::randn({2, 32}).requires_grad_()}, {"out", (at::randn({32, 1}) / 6).requires_grad_()}};
  }
  const std::vector<core::Parameter>& parameters() const override { return parameters_; }
  const std::vector<core::NamedTensor>& buffers() const override { return buffers_; }
  core::TensorList inputs(const core::Batch& batch) const override { return {batch["x"]}; }
  core::TensorList forward_segment(int, core::TensorList x) override {
    return {at::matmul(at::tanh(at::matmul(x[0], parameters_[0].tensor)), parameters_[1].tensor)};
  }
  std::vector<std::string> loss_names() const override { return {"squares"}; }
  core::Normalisers normalisers(const core::Batch& batch) const override {
    return at::full({1}, batch.size(), at::kDouble);
  }
  core::LossTerms loss(const core::TensorList& y, const core::Batch& batch) const override {
    return {{"squares", 1, (y[0] - batch["y"]).square().sum()}};
  }
  std::vector<core::NamedTensor> evaluate(const core::TensorList& y, const core::Batch& batch) const override {
    return {{"squares", (y[0] - batch["y"]).square().sum()}, {"samples", at::full({}, batch.size())}};
  }
  std::vector<core::MetricValue> metrics(const std::vector<core::NamedTensor>& totals) const override {
    return {{"mse", totals[0].tensor.item<double>() / totals[1].tensor.item<double>(), /*higher_is_better=*/false}};
  }
  void set_training(bool) override {}

 private:
  std::vector<core::Parameter> parameters_;
  std::vector<core::NamedTensor> buffers_;
};

class Points final : public core::BatchSource {  // each depends only on (seed, epoch, sample)
 public:
  Points(std::uint64_t seed, std::int64_t samples, const tasks::BatchRequest& request)
      : seed_(seed), samples_(samples), batch_(request.batch), at_(request.start) {}
  std::optional<core::Batch> next() override {
    std::vector<std::int64_t> indices;
    at::Tensor x = at::full({std::clamp<std::int64_t>(samples_ - at_.step * batch_, 0, batch_), 2}, 1.0F);
    for (std::int64_t i = 0; i < x.size(0); ++i) {
      indices.push_back(at_.step * batch_ + i);
      CounterRng random(seed_, static_cast<std::uint32_t>(at_.epoch), static_cast<std::uint64_t>(indices.back()),
                        RandomOp::kOwn);
      x[i][0] = random.uniform(-1, 1);
    }
    if (indices.empty()) {
      at_ = {at_.epoch + 1, 0};
      return std::nullopt;  // the end of the epoch
    }
    core::Batch batch(at_, std::move(indices));
    batch.set("y", (3 * x.slice(1, 0, 1)).sin());
    batch.set("x", std::move(x));
    ++at_.step;
    return batch;
  }

 private:
  std::uint64_t seed_;
  std::int64_t samples_, batch_;
  core::Position at_;
};
}  // namespace

int main(int argc, char** argv) try {
  job::start_process();
  std::vector<std::string> words{"task=sine", "data=points", "run=own-everything"};
  words.insert(words.end(), argv + 1, argv + argc);
  // glue begins
  tasks::add_own_task({
      .name = "sine",
      .model = [](std::uint64_t seed) { return std::make_unique<Net>(seed); },
      .training = [](const auto& request) { return std::make_unique<Points>(request.seed, 2000, request); },
      .evaluation = [](tasks::Split, const auto& request) { return std::make_unique<Points>(1'000'000, 200, request); },
      .train_samples = 2000,
      .val_samples = 200,
      .defaults = {{"lr", "0.01"}, {"epochs", "20"}},
  });
  job::Job job = job::Job::prepare(job::make_request({}, words), [](const std::string&) {});
  const std::atomic<bool> stop = false;
  const job::Outcome outcome = job.train({}, stop);
  // glue ends
  fmt::print("mse {:.4f} after {} steps\n", outcome.best.front().value, outcome.step);
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
