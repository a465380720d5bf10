// SPDX-License-Identifier: Apache-2.0
// Your own augmentation in a whole run: Cutout, a black square somewhere in every training image (DeVries and
// Taylor, "Improved Regularization of Convolutional Neural Networks with Cutout", 2017).
//
//     own_augmentation [DATA [RUN]]     DATA: labelled images, a folder or tar file; RUN: a name (runs/NAME, or
//                                       NAME-2, ... if that exists) or a path
//
// An augmentation is a BatchSource around another one. Its random draws depend only on seed, epoch and sample, so runs
// repeat to the bit and resume where they stopped, with any number of threads. This is shown first on white images,
// where black pixels can be counted, then in a run.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <stoker/stoker.h>

namespace {

using namespace stoker;
constexpr std::int64_t kSide = 8;  // of the square, pixels

class Cutout final : public core::BatchSource {
 public:
  Cutout(std::unique_ptr<core::BatchSource> images, std::uint64_t seed) : images_(std::move(images)), seed_(seed) {}

  std::optional<core::Batch> next() override {
    std::optional<core::Batch> batch = images_->next();
    if (batch) {
      const at::Tensor& images = (*batch)["image"];  // uint8 [B, H, W, C], owned by the batch: may be changed
      const auto epoch = static_cast<std::uint32_t>(batch->position().epoch);
      for (std::int64_t i = 0; i < batch->size(); ++i) {
        const auto sample = static_cast<std::uint64_t>(batch->indices()[static_cast<std::size_t>(i)]);
        CounterRng random(seed_, epoch, sample, RandomOp::kOwn);
        const auto top = random.below(static_cast<std::uint32_t>(images.size(1) - kSide + 1));
        const auto left = random.below(static_cast<std::uint32_t>(images.size(2) - kSide + 1));
        images[i].narrow(0, top, kSide).narrow(1, left, kSide).zero_();
      }
    }
    return batch;
  }

 private:
  std::unique_ptr<core::BatchSource> images_;
  std::uint64_t seed_;
};

// The first batch of an epoch of 100 white images of 28 x 28 pixels, with squares.
at::Tensor white_with_squares(std::int64_t epoch, std::uint64_t seed) {
  data::TensorSourceOptions options;
  options.fields = {{"image", at::full({100, 28, 28, 1}, 255, at::kByte)}};
  options.batch = 100;
  options.shuffle = false;
  options.start = {epoch, 0};
  Cutout source(std::make_unique<data::TensorSource>(options), seed);
  return (*source.next())["image"];
}

void show_on_white() {
  const at::Tensor images = white_with_squares(0, 1);
  const at::Tensor black = images.eq(0).sum(at::IntArrayRef{1, 2, 3});
  fmt::print("black pixels per image: {} to {}\n", black.min().item<std::int64_t>(), black.max().item<std::int64_t>());
  fmt::print("pixels of 784 that are black in some image: {}\n", images.eq(0).any(0).sum().item<std::int64_t>());
  const auto equal = [&](const at::Tensor& other) { return images.equal(other) ? "equal" : "different"; };
  fmt::print("the same epoch again: {}; the next epoch: {}; another seed: {}\n", equal(white_with_squares(0, 1)),
             equal(white_with_squares(1, 1)), equal(white_with_squares(0, 2)));
}

}  // namespace

int main(int argc, char** argv) try {
  job::start_process();  // first: loads CUDA if there is a driver
  const std::string data = argc > 1 ? argv[1] : "examples/data/fashion-mnist-6000.tar";
  const std::string run = argc > 2 ? argv[2] : "own-augmentation";
  show_on_white();

  tasks::TaskChanges changes;
  changes.training_batches = [](std::unique_ptr<core::BatchSource> images, const tasks::BatchRequest& request) {
    return std::make_unique<Cutout>(std::move(images), request.seed);
  };
  tasks::derive_task("cutout", "image_classification", changes);

  const std::vector<std::string> words = {"task=cutout", "data=" + data, "run=" + run, "model=mlp", "epochs=3"};
  job::Job job = job::Job::prepare(job::make_request({}, words), [](const std::string&) {});
  const std::atomic<bool> stop = false;
  const job::Outcome outcome = job.train({}, stop);
  fmt::print("test {} {:.4f}\n", outcome.test.front().name, outcome.test.front().value);
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
