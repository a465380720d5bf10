// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/tips/accumulation_accuracy.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <optional>

#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/load/image_loader.h"
#include "stoker/device/backend.h"
#include "stoker/device/cpu_quota.h"
#include "stoker/device/placement.h"
#include "stoker/device/prefetcher.h"
#include "stoker/optim/schedule.h"
#include "stoker/precision/process_switches.h"
#include "stoker/study/tips/bench_model.h"
#include "stoker/tasks/image/preprocessing.h"
#include "stoker/train/evaluate.h"
#include "stoker/train/step.h"

namespace stoker::study {
namespace {

constexpr double kLr = 0.02;  // for 32 samples
constexpr int kPixels = 32, kClasses = 10;
constexpr std::int64_t kFewest = 32;  // the largest batch
constexpr const char* kModels[] = {"resnet34-slim", "resnet34-slim-no-norm"};

struct Schedule {
  const char* name;
  std::int64_t batch, microbatch;
};
constexpr Schedule kSchedules[] = {{"32 x 1", 32, 32}, {"16 x 2", 32, 16}, {"16 x 1", 16, 16}};

// Spread evenly, so that every class is present for any order of files.
void keep(data::ImageSplit& split, std::int64_t most) {
  const std::int64_t size = split.size(), kept = std::min(size, most);
  BitSet positions(size);
  for (std::int64_t i = 0; i < kept; ++i) {
    positions.insert(i * size / kept);
  }
  positions.seal();
  split = data::part_of(split, std::make_shared<const BitSet>(std::move(positions)), true);
}

data::ImageLoaderOptions loading(const data::ImageSplit& split, std::int64_t batch, std::uint64_t seed, bool training) {
  const tasks::ImagePreprocessing pixels = tasks::preprocessing(kPixels, 3);
  data::ImageLoaderOptions options;
  options.split = split;
  options.policy = training ? tasks::training_policy("pad_crop_flip", pixels) : tasks::evaluation_policy(pixels);
  options.batch = batch;
  options.seed = seed;
  options.shuffle = training;
  options.drop_tail = training;
  options.threads = 0;  // decoding such images takes almost no time
  return options;
}

double accuracy_on(tasks::NetworkTrainable& model, const data::ImageSplit& test, c10::Device device) {
  const auto source = device::prefetched(std::make_unique<data::ImageLoader>(loading(test, 250, 0, false)), device);
  const train::EvaluationMode evaluation(model);
  return model.metrics(train::evaluate(model, *source, at::kFloat)).front().value;
}

struct Training {
  std::string model;
  Schedule schedule;
  std::uint64_t seed;
  std::int64_t epochs;
};

// Accuracy on the test split; nothing if stopped.
std::optional<double> train_once(const data::ImageFolder& data, const Training& training, c10::Device device,
                                 const std::function<bool()>& stop) {
  const Schedule& schedule = training.schedule;
  BenchModel bench = make_bench_model(training.model, {.device = device, .seed = training.seed});
  train::Step step(*bench.model, bench.optimizer, {.seed = training.seed});
  data::ImageLoader loader(loading(data.train, schedule.batch, training.seed, true));
  optim::ScheduleOptions lr{.lr = kLr * static_cast<double>(schedule.batch) / 32};
  lr.total_steps = training.epochs * loader.steps_per_epoch();
  lr.warmup_steps = lr.total_steps / 10;
  for (std::int64_t number = 0; number < lr.total_steps;) {
    std::optional<core::Batch> batch = loader.next();
    if (!batch) {
      continue;  // between two epochs
    }
    step.compute(device::move_batch(std::move(*batch), device), number, schedule.microbatch);
    step.commit(optim::lr_at(lr, number++));
    if (stop && stop()) {
      return std::nullopt;
    }
  }
  return accuracy_on(*bench.model, data.test, device);
}

// Forward and backward.
double seconds_per_sample(const std::string& model, c10::Device device) {
  BenchModel bench = make_bench_model(model, {.device = device});
  train::Step step(*bench.model, bench.optimizer);
  device::Backend& backend = device::backend_for(device);
  double seconds = 0;
  for (int i = 0; i < 3; ++i) {  // the last one counts
    backend.synchronize(device);
    const Stopwatch watch;
    step.compute(bench.batch, i);
    step.commit(bench.lr);
    backend.synchronize(device);
    seconds = watch.seconds();
  }
  return seconds / static_cast<double>(bench.batch.size());
}

}  // namespace

data::ImageFolder accuracy_images(const std::filesystem::path& folder, std::int64_t most) {
  data::ImageFolder data = data::open_image_folder(folder, {.val = 0});
  if (data.test.size() == 0 || data.classes.size() > kClasses) {
    fail<ConfigError>("study.accuracy", "{}: needs a test split and at most {} classes, such as CIFAR-10",
                      printable(folder.native()), kClasses);
  }
  if (const std::int64_t left = std::min(data.train.size(), most); left < kFewest) {
    fail<ConfigError>("study.accuracy", "{} training images are fewer than a batch of {}; set --images={} or more",
                      left, kFewest, kFewest);
  }
  keep(data.train, most);
  keep(data.test, most);
  return data;
}

std::vector<ScheduleAccuracy> accumulation_accuracy(const data::ImageFolder& data, const AccuracyOptions& options) {
  const c10::Device device = device::choose_device(options.device).device;
  const precision::ProcessSwitches switches;
  at::set_num_threads(options.intra_op > 0 ? options.intra_op : device::cpu_quota().cores);
  const auto say = [&](const std::string& text) {
    if (options.say) {
      options.say(text);
    }
  };
  const double once = seconds_per_sample(kModels[0], device) + seconds_per_sample(kModels[1], device);
  const double rounds = static_cast<double>(options.seeds) * static_cast<double>(std::size(kSchedules));
  const double minutes = once * rounds * static_cast<double>(options.epochs * data.train.size()) / 60;
  say(fmt::format("accuracy by schedule: {} trainings, {} epochs each, {} images, about {:.0f} minutes",
                  2 * static_cast<int>(rounds), options.epochs, data.train.size(), minutes));
  std::vector<ScheduleAccuracy> results;
  for (const char* model : kModels) {
    for (const Schedule& schedule : kSchedules) {
      for (int seed = 0; seed < options.seeds; ++seed) {
        const Training training{model, schedule, static_cast<std::uint64_t>(seed), options.epochs};
        const std::optional<double> accuracy = train_once(data, training, device, options.stop);
        if (!accuracy) {
          return results;
        }
        if (seed == 0) {
          results.push_back({model, schedule.name, {}});
        }
        results.back().accuracy.push_back(*accuracy);
        say(fmt::format("{}, {}, seed {}: {:.1f} %", model, schedule.name, seed, 100 * *accuracy));
      }
    }
  }
  return results;
}

}  // namespace stoker::study
