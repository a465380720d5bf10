// SPDX-License-Identifier: Apache-2.0
// The training loop by hand: shows what job::Job does, for users who need another loop.
//
//     loop_by_hand [DATA [FOLDER [STEPS]]]     DATA: images of 28 x 28 grey pixels; FOLDER: where checkpoints go
//
// A step is compute, then commit: compute leaves the gradients of the batch and may throw (out of memory, a bad sample)
// without side effects, commit updates the weights. A checkpoint holds everything that influences the next step: a
// training that is saved halfway, destroyed and rebuilt ends with the same weights as an uninterrupted one.
#include <stoker/stoker.h>

#include <cstdlib>

namespace {

using namespace stoker;

data::ImageLoaderOptions images(const data::ImageSplit& split) {
  data::ImageLoaderOptions options;
  options.split = split;
  options.channels = 1;
  options.policy = {.crop = augment::Crop::kPad, .out_width = 28, .out_height = 28, .pad = 2};  // shifts a little
  options.batch = 64;
  options.seed = 1;
  return options;
}

tasks::ImageClassifier make_model() {
  tasks::ClassifierOptions options;
  options.preprocessing = {.channels = 1, .image_size = 28, .resize = 28, .mean = {0.29}, .std = {0.35}};
  options.label_smoothing = 0.1;
  return {models::make_network("cnn", {.classes = 10, .channels = 1, .image_size = 28, .seed = 1}), options};
}

struct Training {
  Training(const data::ImageSplit& training, std::int64_t steps) : split(training) {
    schedule = {.kind = optim::ScheduleKind::kOneCycle, .lr = 0.1, .total_steps = steps};
  }

  void train_until(std::int64_t last) {
    data::ImageLoaderOptions options = images(split);
    options.start = position;
    data::ImageLoader source(options);
    while (number < last) {
      const std::optional<core::Batch> batch = source.next();
      if (!batch) {
        continue;  // the end of an epoch; the next call starts another
      }
      step.compute(*batch, number);
      step.commit(optim::lr_at(schedule, number));
      position = {batch->position().epoch, batch->position().step + 1};
      if (++number % 20 == 0) {
        fmt::print("step {}: loss {:.4f}\n", number, step.scalars()[0].item<float>());  // this waits for the device
      }
    }
  }

  // Each tensor has a checksum; the folder is replaced completely or not at all.
  void save(io::CheckpointStore& store) const {
    io::Checkpoint checkpoint;
    for (const core::Parameter& parameter : model.parameters()) {
      checkpoint.weights[parameter.name] = parameter.tensor.detach();
    }
    for (const core::NamedTensor& buffer : model.buffers()) {
      checkpoint.weights[buffer.name] = buffer.tensor;
    }
    step.save_state(checkpoint.state);  // momentum and more
    checkpoint.state.numbers = {{"number", number}, {"epoch", position.epoch}, {"step", position.step}};
    store.save("last", checkpoint);
  }
  void load(const io::CheckpointStore& store) {
    const io::Checkpoint checkpoint = store.load("last");
    model.network().load(checkpoint.weights);
    step.load_state(checkpoint.state);
    number = checkpoint.state.integer("number");
    position = {checkpoint.state.integer("epoch"), checkpoint.state.integer("step")};
  }

  const data::ImageSplit& split;
  optim::ScheduleOptions schedule;
  tasks::ImageClassifier model = make_model();
  train::Step step{model, {.name = "sgd", .weight_decay = 5e-4, .nesterov = true}, {.clip = 5, .seed = 1}};
  std::int64_t number = 0;  // of the next step
  core::Position position;  // of the next batch
};

bool equal(const Training& a, const Training& b) {
  const auto same = [](const auto& x, const auto& y) { return x.tensor.equal(y.tensor); };
  return std::ranges::equal(a.model.parameters(), b.model.parameters(), same) &&
         std::ranges::equal(a.model.buffers(), b.model.buffers(), same);  // batch norm's running statistics
}

}  // namespace

int main(int argc, char** argv) try {
  const auto folder = data::open_image_folder(argc > 1 ? argv[1] : "examples/data/fashion-mnist-6000.tar");
  io::CheckpointStore store(argc > 2 ? argv[2] : "runs/loop-by-hand");
  const std::int64_t steps = argc > 3 ? std::atoll(argv[3]) : 60;

  Training through(folder.train, steps);
  through.train_until(steps);
  {
    Training half(folder.train, steps);
    half.train_until(steps / 2);
    half.save(store);
  }  // destroyed
  Training resumed(folder.train, steps);
  resumed.load(store);
  resumed.train_until(steps);
  fmt::print("weights of the resumed and of the uninterrupted training: {}\n",
             equal(resumed, through) ? "equal to the bit" : "different");
  resumed.save(store);

  const train::EvaluationMode mode(resumed.model);  // batch norm uses its running statistics
  data::ImageLoaderOptions options = images(folder.test);
  options.policy.crop = augment::Crop::kNone;
  data::ImageLoader test(options);
  const auto metrics = resumed.model.metrics(train::evaluate(resumed.model, test, at::kFloat));
  fmt::print("test {} {:.4f}\n", metrics.front().name, metrics.front().value);
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
