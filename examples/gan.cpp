// SPDX-License-Identifier: Apache-2.0
// A toy GAN, as an example of two Trainables over shared modules that are stepped in turn.
//
//     gan [DATA [STEPS]]      DATA: a folder or tar file of labelled images, such as the demo's sample
//
// The generator maps noise to images of 28 x 28 grey pixels, the discriminator classifies real and generated images;
// both losses are sums with the batch size as normaliser. Prints both losses now and then, and the distance of the mean
// generated image from the mean real one: it falls.
#include <ATen/TensorOperators.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>
#include <stoker/stoker.h>

#include <cstdlib>

namespace {

using namespace stoker;
constexpr std::int64_t kNoise = 32, kPixels = 28 * 28, kHidden = 256;

// A network of two linear layers, each with an activation.
std::unique_ptr<models::Network> two_layers(std::uint64_t seed, std::int64_t in, std::int64_t out,
                                            at::Tensor (*between)(const at::Tensor&),
                                            at::Tensor (*after)(const at::Tensor&)) {
  models::NetworkBuilder builder(seed);
  builder.begin_segment("layers");
  const auto first = builder.linear("first", in, kHidden), second = builder.linear("second", kHidden, out);
  builder.end_segment([=](const at::Tensor& x) { return after(second(between(first(x)))); });
  return builder.finish();
}

// Shared by both players: parameters of their own network, and one loss term over the samples of the batch.
class Player : public core::Trainable {
 public:
  explicit Player(models::Network& network) : network_(network) {}
  const std::vector<core::Parameter>& parameters() const override { return network_.parameters(); }
  const std::vector<core::NamedTensor>& buffers() const override { return network_.buffers(); }
  core::Normalisers normalisers(const core::Batch& batch) const override {
    return at::scalar_tensor(batch.size(), at::kDouble).reshape({1});
  }
  std::vector<std::string> loss_names() const override { return {"adversarial"}; }
  std::vector<core::NamedTensor> evaluate(const core::TensorList&, const core::Batch&) const override { return {}; }
  std::vector<core::MetricValue> metrics(const std::vector<core::NamedTensor>&) const override { return {}; }
  void set_training(bool on) override { network_.set_training(on); }

 protected:
  static at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& target) {
    return at::binary_cross_entropy_with_logits(logits, target, {}, {}, at::Reduction::Sum);
  }
  models::Network& network_;
};

// Inputs "real" and "fake" [B, pixels]; real images should get high scores.
class Discriminator final : public Player {
 public:
  using Player::Player;
  core::TensorList inputs(const core::Batch& batch) const override { return {batch["real"], batch["fake"]}; }
  core::TensorList forward_segment(int, core::TensorList x) override {
    return {network_.forward(x[0]), network_.forward(x[1])};
  }
  core::LossTerms loss(const core::TensorList& logits, const core::Batch&) const override {
    return {{"adversarial", 0.5,
             cross_entropy(logits[0], at::ones_like(logits[0])) + cross_entropy(logits[1], at::zeros_like(logits[1]))}};
  }
};

// Input "noise" [B, kNoise]; its images should get high scores from the discriminator. It trains only its own weights.
class Generator final : public Player {
 public:
  Generator(models::Network& network, models::Network& critic) : Player(network), critic_(critic) {}
  core::TensorList inputs(const core::Batch& batch) const override { return {batch["noise"]}; }
  core::TensorList forward_segment(int, core::TensorList x) override {
    return {critic_.forward(network_.forward(x[0]))};
  }
  core::LossTerms loss(const core::TensorList& logits, const core::Batch&) const override {
    return {{"adversarial", 1, cross_entropy(logits[0], at::ones_like(logits[0]))}};
  }

 private:
  models::Network& critic_;
};

}  // namespace

int main(int argc, char** argv) try {
  const std::int64_t steps = argc > 2 ? std::atoll(argv[2]) : 600;
  data::ImageLoaderOptions options;
  options.split = data::open_image_folder(argc > 1 ? argv[1] : "examples/data/fashion-mnist-6000.tar").train;
  options.channels = 1;
  options.policy.crop = augment::Crop::kNone;
  options.policy.out_width = options.policy.out_height = 28;
  data::ImageLoader source(options);

  const auto make = two_layers(1, kNoise, kPixels, at::relu, at::tanh);
  const auto critic = two_layers(
      2, kPixels, 1, [](const at::Tensor& x) { return at::leaky_relu(x, 0.2); }, [](const at::Tensor& x) { return x; });
  Generator generator(*make, *critic);
  Discriminator discriminator(*critic);
  const optim::OptimizerOptions adam{.name = "adam", .weight_decay = 0, .beta1 = 0.5};
  train::Step generator_step(generator, adam), critic_step(discriminator, adam);
  double distance = 0;
  for (std::int64_t number = 0; number < steps;) {
    std::optional<core::Batch> batch = source.next();
    if (!batch) {
      continue;  // the next epoch begins
    }
    batch->set("real", (*batch)["image"].reshape({batch->size(), kPixels}).to(at::kFloat) / 127.5 - 1);
    batch->set("noise", at::randn({batch->size(), kNoise}));
    batch->set("fake", make->forward((*batch)["noise"]).detach());
    for (train::Step* player : {&critic_step, &generator_step}) {
      player->compute(*batch, number);
      player->commit(/*lr=*/2e-4);
    }
    distance = ((*batch)["real"].mean(0) - (*batch)["fake"].mean(0)).abs().mean().item<double>();
    if (++number % 100 == 0 || number == 1) {
      fmt::print("step {:4}  discriminator {:.3f}  generator {:.3f}  distance of means {:.3f}\n", number,
                 critic_step.scalars()[0].item<float>(), generator_step.scalars()[0].item<float>(), distance);
    }
  }
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
