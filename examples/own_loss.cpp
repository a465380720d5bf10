// SPDX-License-Identifier: Apache-2.0
// A loss of two terms with different normalisers: few labels and many images, trained together.
//
//     own_loss [DATA [STEPS]]     DATA: labelled images of 28 x 28 grey pixels, a folder or tar file
//
// One image in eight has a label. The network classifies these, and reconstructs every image from 32 numbers. Each term
// is a sum, and its normaliser is a count: labels for one, pixels for the other. Normalisers are computed for the whole
// batch before it is split, so gradients do not depend on the split, even with uneven labels: the program steps once
// with whole batches and once with microbatches of 7, and prints the difference of the weights.
#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <stoker/stoker.h>

#include <cstdlib>

namespace {

using namespace stoker;
constexpr std::int64_t kPixels = 28 * 28, kOneLabelIn = 8;

std::unique_ptr<models::Network> make_network() {
  models::NetworkBuilder builder(/*seed=*/1);
  builder.begin_segment("encoder");
  const auto hidden = builder.linear("hidden", kPixels, 256), code = builder.linear("code", 256, 32);
  builder.end_segment([=](const at::Tensor& x) { return code(hidden(x).relu()).relu(); });
  builder.begin_segment("heads");  // one tensor in, two out
  const auto head = builder.linear("head", 32, 10), wide = builder.linear("wide", 32, 256);
  const auto painter = builder.linear("painter", 256, kPixels);
  builder.end_list_segment([=](core::TensorList x) {
    return core::TensorList{head(x[0]), painter(wide(x[0]).relu()).sigmoid()};
  });
  return builder.finish();
}

// Batches with "image" uint8 [B, 28, 28, 1], "target" int64 [B] and "labelled" float [B], 1 where the target is known.
class FewLabels final : public tasks::NetworkTrainable {
 public:
  FewLabels() : NetworkTrainable(make_network()) {}

  core::TensorList inputs(const core::Batch& batch) const override { return {pixels(batch)}; }

  std::vector<std::string> loss_names() const override { return {"cross_entropy", "repainting"}; }
  core::Normalisers normalisers(const core::Batch& batch) const override {
    return at::stack({batch["labelled"].sum().to(at::kDouble), at::scalar_tensor(batch.size() * kPixels, at::kDouble)});
  }
  core::LossTerms loss(const core::TensorList& outputs, const core::Batch& batch) const override {
    const at::Tensor known = batch["labelled"].nonzero().squeeze(1);
    return {{"cross_entropy", 1,
             ops::cross_entropy_sum(outputs[0].index_select(0, known), batch["target"].index_select(0, known))},
            {"repainting", 10, at::mse_loss(outputs[1], pixels(batch), at::Reduction::Sum)}};
  }

  std::vector<core::NamedTensor> evaluate(const core::TensorList& outputs, const core::Batch& batch) const override {
    return tasks::classification_totals(outputs[0], batch["target"]);
  }
  std::vector<core::MetricValue> metrics(const std::vector<core::NamedTensor>& totals) const override {
    return tasks::classification_metrics(totals);
  }

 private:
  static at::Tensor pixels(const core::Batch& batch) { return batch["image"].to(at::kFloat).flatten(1) / 255; }
};

data::ImageLoaderOptions images(const data::ImageSplit& split) {
  data::ImageLoaderOptions options;
  options.split = split;
  options.channels = 1;
  options.policy = {.crop = augment::Crop::kNone, .out_width = 28, .out_height = 28};
  return options;
}

void hide_labels(core::Batch& batch) {
  std::vector<float> labelled;
  for (const std::int64_t sample : batch.indices()) {
    labelled.push_back(sample % kOneLabelIn == 0 ? 1.F : 0.F);
  }
  batch.set("labelled", at::tensor(labelled));
}

double distance(const core::Trainable& a, const core::Trainable& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.parameters().size(); ++i) {
    const at::Tensor difference = a.parameters()[i].tensor.detach() - b.parameters()[i].tensor.detach();
    largest = std::max(largest, difference.abs().max().item<double>());
  }
  return largest;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto folder = data::open_image_folder(argc > 1 ? argv[1] : "examples/data/fashion-mnist-6000.tar");
  const std::int64_t steps = argc > 2 ? std::atoll(argv[2]) : 500;
  FewLabels model, twin;
  const optim::OptimizerOptions sgd{.name = "sgd"};
  train::Step step(model, sgd, {.clip = 1}), step_in_parts(twin, sgd, {.clip = 1});

  data::ImageLoader source(images(folder.train));
  for (std::int64_t number = 0; number < steps;) {
    std::optional<core::Batch> batch = source.next();
    if (!batch) {
      continue;  // the next epoch begins
    }
    hide_labels(*batch);
    step.compute(*batch, number);
    step.commit(/*lr=*/0.02);
    if (number < 20) {
      step_in_parts.compute(*batch, number, /*microbatch=*/7);
      step_in_parts.commit(0.02);
    }
    if (number == 19) {
      fmt::print("largest difference of a weight after 20 steps, whole batches and parts of 7: {:.1e}\n",
                 distance(model, twin));
    }
    if (++number % 100 == 0) {
      const at::Tensor values = step.scalars();  // in the order of step.scalar_names(): loss, then its terms
      fmt::print("step {}: loss {:.4f} = cross_entropy {:.4f} + repainting {:.4f}\n", number, values[0].item<float>(),
                 values[1].item<float>(), values[2].item<float>());
    }
  }
  const train::EvaluationMode mode(model);
  data::ImageLoader test(images(folder.test));
  fmt::print("accuracy on {} test images: {:.3f}\n", folder.test.size(),
             model.metrics(train::evaluate(model, test, at::kFloat)).front().value);
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
