// SPDX-License-Identifier: Apache-2.0
// A loop of your own on several processes: the ten lines with a star are all that a loop for one process lacks.
//
//     several_ranks [RANKS [DATA [STEPS]]]     DATA: images of 28 x 28 grey pixels
//     torchrun --no-python --nproc-per-node=2 several_ranks
//
// Each rank takes its part of each batch; the gradients are summed beside backward. The batch stays as large as with
// one process, so the weights differ only by rounding. An error of one rank ends all of them, with its message.
#include <stoker/stoker.h>

#include <cstdlib>

namespace {

using namespace stoker;

tasks::ImageClassifier make_model() {
  tasks::ClassifierOptions options;
  options.preprocessing = {.channels = 1, .image_size = 28, .resize = 28, .mean = {0.29}, .std = {0.35}};
  // Group norm sees one image at a time; the statistics of batch norm would be those of a rank's images.
  const models::ModelOptions size{
      .classes = 10, .channels = 1, .image_size = 28, .seed = 1, .norm = models::ConvNorm::kGroup};
  return {models::make_network("cnn", size), options};
}

data::ImageLoaderOptions images(const data::ImageSplit& split, const core::Communicator& ranks) {
  data::ImageLoaderOptions options;
  options.split = split;
  options.channels = 1;
  options.policy = {.crop = augment::Crop::kNone, .out_width = 28, .out_height = 28};
  options.batch = 64;
  options.rank = ranks.rank();   // *
  options.ranks = ranks.size();  // *
  return options;
}

void train_and_test(core::Communicator& ranks, const data::ImageFolder& data, std::int64_t steps) {
  tasks::ImageClassifier model = make_model();
  train::Step step(model, {.name = "sgd"}, {.seed = 1}, &ranks);  // *
  data::ImageLoader source(images(data.train, ranks));
  for (std::int64_t number = 0; number < steps;) {
    const std::optional<core::Batch> batch = source.next();
    if (!batch) {
      continue;  // the end of an epoch; the next call starts another
    }
    step.compute(*batch, number);
    step.commit(0.05);
    if (++number % 20 == 0 && ranks.rank() == 0) {  // *
      fmt::print("step {}: loss {:.4f}\n", number, step.scalars()[0].item<float>());
    }
  }
  const train::EvaluationMode mode(model);
  data::ImageLoader test(images(data.test, ranks));
  auto totals = train::evaluate(model, test, at::kFloat);
  totals = train::sum_over_ranks(std::move(totals), ranks);  // *
  if (ranks.rank() == 0) {                                   // *
    const auto metrics = model.metrics(totals);
    fmt::print("{} ranks, test {} {:.4f}\n", ranks.size(), metrics.front().name, metrics.front().value);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const job::Ranks ranks(argc > 1 ? std::atoi(argv[1]) : 2);  // *
  const auto data = data::open_image_folder(argc > 2 ? argv[2] : "examples/data/fashion-mnist-6000.tar");
  try {  // *
    train_and_test(ranks.all(), data, argc > 3 ? std::atoll(argv[3]) : 60);
  } catch (const std::exception& error) {  // *
    ranks.all().leave(error);              // *
    throw;
  }
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
