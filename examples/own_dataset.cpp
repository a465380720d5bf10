// SPDX-License-Identifier: Apache-2.0
// Your own dataset as a BatchSource: here images that are drawn on demand and never stored.
//
//     own_dataset [STEPS]
//
// A BatchSource returns the batches of one epoch, then an empty result, then the next epoch. If its batches depend only
// on (seed, epoch, sample), as here with CounterRng, then every run repeats, a resumed run continues with exactly the
// same batches, and threads and ranks do not change them. Prints whether a source that starts in the middle agrees with
// one that stepped there, and the accuracy on images that the network never saw.
#include <ATen/ops/empty.h>
#include <stoker/stoker.h>

#include <cstdlib>

namespace {

using namespace stoker;
constexpr int kSide = 20;         // pixels
constexpr int kClasses = 3;       // disc, square, cross
constexpr std::uint16_t kOp = 0;  // number of this use of random numbers in the program

// One grey image: a shape with random position and size, random brightness, on a noisy background.
void draw_shape(CounterRng random, int shape, std::uint8_t* pixels) {
  const double radius = random.uniform(4, 7);
  const double x = random.uniform(radius, kSide - radius), y = random.uniform(radius, kSide - radius);
  const double light = random.uniform(90, 200);
  for (int row = 0; row < kSide; ++row) {
    for (int column = 0; column < kSide; ++column) {
      const double dx = std::abs(column - x), dy = std::abs(row - y);
      const bool inside = shape == 0   ? dx * dx + dy * dy < radius * radius
                          : shape == 1 ? std::max(dx, dy) < 0.8 * radius
                                       : std::min(dx, dy) < 0.35 * radius && std::max(dx, dy) < radius;
      *pixels++ = static_cast<std::uint8_t>((inside ? light : 30) + random.uniform(0, 55));
    }
  }
}

class Shapes final : public core::BatchSource {
 public:
  // start: the first batch to return.
  Shapes(std::uint64_t seed, std::int64_t batch, std::int64_t steps_per_epoch, core::Position start = {})
      : seed_(seed), batch_(batch), steps_(steps_per_epoch), at_(start) {}

  std::optional<core::Batch> next() override {
    if (at_.step == steps_) {
      at_ = {at_.epoch + 1, 0};
      return std::nullopt;  // the end of the epoch
    }
    std::vector<std::int64_t> samples;
    at::Tensor images = at::empty({batch_, kSide, kSide, 1}, at::kByte), classes = at::empty({batch_}, at::kLong);
    for (std::int64_t i = 0; i < batch_; ++i) {
      samples.push_back(at_.step * batch_ + i);
      const auto number = static_cast<std::uint64_t>(samples.back());
      CounterRng random(seed_, static_cast<std::uint32_t>(at_.epoch), number, RandomOp::kOwn, kOp);
      const auto shape = static_cast<int>(random.below(kClasses));
      classes.data_ptr<std::int64_t>()[i] = shape;
      draw_shape(random, shape, images.data_ptr<std::uint8_t>() + i * kSide * kSide);
    }
    core::Batch batch(at_, std::move(samples));
    batch.set("image", std::move(images));
    batch.set("target", std::move(classes));
    ++at_.step;
    return batch;
  }

 private:
  std::uint64_t seed_;
  std::int64_t batch_, steps_;
  core::Position at_;
};

// Whether a source that starts at a position returns the same batch as one that stepped there.
bool agrees_at(core::Position there) {
  Shapes walker(1, 32, 10), starter(1, 32, 10, there);
  std::optional<core::Batch> walked;
  do {
    walked = walker.next();
  } while (!walked || walked->position() != there);
  const std::optional<core::Batch> started = starter.next();
  return (*started)["image"].equal((*walked)["image"]) && (*started)["target"].equal((*walked)["target"]);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::int64_t steps = argc > 1 ? std::atoll(argv[1]) : 300;
  fmt::print("a source that starts at epoch 3, step 7 agrees with one that steps there: {}\n",
             agrees_at({3, 7}) ? "yes" : "no");

  tasks::ClassifierOptions options;
  options.preprocessing = {.channels = 1, .image_size = kSide, .resize = kSide, .mean = {0.3}, .std = {0.25}};
  tasks::ImageClassifier model(
      models::make_network("cnn", {.classes = kClasses, .channels = 1, .image_size = kSide, .seed = 1}), options);
  train::Step step(model, {.name = "adamw"});

  Shapes source(/*seed=*/1, /*batch=*/32, /*steps_per_epoch=*/100);
  for (std::int64_t number = 0; number < steps;) {
    const std::optional<core::Batch> batch = source.next();
    if (!batch) {
      continue;  // the next epoch: other images
    }
    step.compute(*batch, number++);
    step.commit(/*lr=*/1e-3);
  }

  const train::EvaluationMode mode(model);
  Shapes unseen(/*seed=*/2, 100, 10);
  const auto metrics = model.metrics(train::evaluate(model, unseen, at::kFloat));
  fmt::print("accuracy on 1000 other images after {} steps: {:.3f}\n", steps, metrics.front().value);
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
