// SPDX-License-Identifier: Apache-2.0
// Fits a line with a model, a loss and a data set of its own, using only installed headers, and prints the results that
// tests/house/consumer_test.py compares with the same descent in Python. With the argument "photos" it trains on the
// images in that folder.
#include <ATen/ops/linear.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <stoker/stoker.h>

#include <cstdio>
#include <string_view>

namespace {

using namespace stoker;

// y = w x + b with the mean of squared errors; "x" float [B, 2], "y" float [B, 1].
class Line final : public core::Trainable {
 public:
  Line() {
    parameters_.push_back({"weight", at::zeros({1, 2}).requires_grad_(true), core::Role::kLinear});
    parameters_.push_back({"bias", at::zeros({1}).requires_grad_(true), core::Role::kBias});
  }
  const std::vector<core::Parameter>& parameters() const override { return parameters_; }
  const std::vector<core::NamedTensor>& buffers() const override { return buffers_; }
  core::TensorList inputs(const core::Batch& batch) const override { return {batch["x"]}; }
  core::TensorList forward_segment(int, core::TensorList x) override {
    return {at::linear(x[0], parameters_[0].tensor, parameters_[1].tensor)};
  }
  std::vector<std::string> loss_names() const override { return {"squares"}; }
  core::Normalisers normalisers(const core::Batch& batch) const override {
    return at::scalar_tensor(batch.size(), at::kDouble).reshape({1});
  }
  core::LossTerms loss(const core::TensorList& outputs, const core::Batch& batch) const override {
    return {{"squares", 1, at::mse_loss(outputs[0], batch["y"], at::Reduction::Sum)}};
  }
  std::vector<core::NamedTensor> evaluate(const core::TensorList&, const core::Batch&) const override { return {}; }
  std::vector<core::MetricValue> metrics(const std::vector<core::NamedTensor>&) const override { return {}; }
  void set_training(bool) override {}

 private:
  std::vector<core::Parameter> parameters_;
  std::vector<core::NamedTensor> buffers_;
};

data::TensorSource points() {
  std::vector<float> x, y;
  for (int i = 0; i < 12; ++i) {
    const float a = 0.25F * static_cast<float>(i % 4), b = 0.5F * static_cast<float>(i / 4);
    x.insert(x.end(), {a, b});
    y.push_back(3 * a - 2 * b + (i % 2 == 0 ? 0.5F : 0.25F));
  }
  data::TensorSourceOptions options;
  options.fields = {{"x", at::tensor(x).reshape({12, 2})}, {"y", at::tensor(y).reshape({12, 1})}};
  options.batch = 12;
  return data::TensorSource(std::move(options));
}

// docs/api.md shows these lines; tests/house/reference_test.py compares the two.
void train_on_photos() {
  stoker::job::start_process();  // first in main: brings CUDA in where there is a driver
  stoker::job::Request request = stoker::job::make_request({}, {"data=photos", "epochs=5"});
  stoker::job::Job job = stoker::job::Job::prepare(std::move(request), [](const std::string&) {});
  const std::atomic<bool> stop = false;
  job.train({}, stop);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "photos") {
    train_on_photos();
    return 0;
  }
  job::start_process();
  Line line;
  const auto sgd = optim::make_optimizer({.name = "sgd", .weight_decay = 0, .momentum = 0.9}, line.parameters());
  precision::GradScaler scaler({.scaling = false}, at::kCPU);
  core::SingleRank ranks;
  train::Step step({line, *sgd, scaler, ranks}, {});
  data::TensorSource source = points();
  for (std::int64_t number = 0; number < 25;) {
    if (const std::optional<core::Batch> batch = source.next()) {
      step.compute(*batch, number++, /*microbatch=*/5);  // 5 + 5 + 2 samples, or 4 + 4 + 4
      step.commit(0.05);
    }
  }
  const at::Tensor weight = line.parameters()[0].tensor.detach().reshape({2}),
                   bias = line.parameters()[1].tensor.detach();
  std::printf("%.6f %.6f %.6f %.6f\n", weight[0].item<double>(), weight[1].item<double>(), bias.item<double>(),
              step.scalars()[0].item<double>());
  for (const tasks::TaskKind* kind : tasks::known_tasks()) {  // links the rooms and the libraries that they use
    std::printf("%s\n", kind->name().c_str());
  }
}
