// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/image_setup.h"

#include <ATen/Parallel.h>

#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/image_loader.h"
#include "stoker/device/backend.h"
#include "stoker/device/cpu_quota.h"
#include "stoker/device/placement.h"
#include "stoker/device/smoke_check.h"
#include "stoker/io/checkpoint/store.h"
#include "stoker/io/safetensors.h"
#include "stoker/job/trials.h"
#include "stoker/models/registry.h"
#include "stoker/precision/autocast.h"
#include "stoker/precision/policy.h"
#include "stoker/tasks/image_classification.h"
#include "stoker/tasks/image_recipe.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;

data::ImageFolder open_data(const Request& request, const train::Plan* saved, const Say& say) {
  // The split is cut before there is a plan: these two values are known without one.
  train::Plan cut;
  cut.val = train::kDefaultVal;
  cut.seed = train::kDefaultSeed;
  for (const char* key : {"val", "seed"}) {
    if (const auto* asked = request.options.find(key)) {
      train::setting(key).parse(cut, asked->value);
    }
  }
  const train::Plan& chosen = saved != nullptr ? *saved : cut;
  data::SplitOptions options;
  options.val = chosen.val;
  options.seed = static_cast<std::uint64_t>(chosen.seed);
  double next = now_s() + 1;  // a short look needs no words
  return data::open_image_folder(request.data, options, [&](std::int64_t files) {
    if (const double now = now_s(); now >= next) {
      say(fmt::format("looking at {}: {} files so far", printable(request.data.native()), files));
      next = now + 1;
    }
  });
}

train::Facts gather_facts(const Request& request, const data::ImageFolder& folder, const tasks::PictureFacts& pictures,
                          const device::DeviceChoice& choice) {
  const auto asked = [&](const char* key) {
    const auto* found = request.options.find(key);
    return found == nullptr ? std::string() : found->value;
  };
  tasks::RecipeQuestion question;
  question.model = asked("model");
  question.optimizer = asked("optimizer");
  question.image_size = asked("image_size").empty() ? 0 : std::stoi(asked("image_size"));
  question.weights = !asked("weights").empty();
  question.cuda = choice.device.is_cuda();
  train::Facts facts;
  facts.train_samples = folder.train.size();
  facts.val_samples = folder.val.size();
  facts.cores = device::cpu_quota().cores;
  facts.device = choice.device.is_cuda() ? choice.device.str() : "cpu";
  facts.device_reason = choice.reason;
  facts.recipe = tasks::recipe(question, pictures, folder.train.size());
  facts.couples_samples = tasks::couples_samples(question.model.empty() ? facts.recipe.front().value : question.model);
  return facts;
}

std::map<std::string, at::Tensor> read_weights(const std::string& path) {
  if (fs::is_directory(path)) {
    return io::load_weights(find_checkpoint(path)).weights;
  }
  return io::read_safetensors(path).tensors;
}

// What became of the weights, in words.
std::string load_weights(models::Network& network, const std::string& path) {
  const auto weights = read_weights(path);  // its errors name the file
  try {
    return network.load(weights).text();
  } catch (const CheckpointError& error) {
    fail<CheckpointError>("job.setup", "weights={}: {}", printable(path), error.what());
  }
}

std::unique_ptr<tasks::ImageClassifier> build_model(ImageSetup& setup) {
  const train::Plan& plan = setup.plan;
  models::ModelOptions options;
  options.classes = static_cast<int>(setup.folder.classes.size());
  options.channels = setup.pixels.channels;
  options.image_size = setup.pixels.image_size;
  options.seed = static_cast<std::uint64_t>(plan.seed);
  auto network = models::make_network(plan.model, options);
  if (!plan.weights.empty()) {
    setup.notes.push_back(fmt::format("weights={}: {}", printable(plan.weights), load_weights(*network, plan.weights)));
  }
  network->set_frozen(static_cast<int>(plan.freeze));
  tasks::ClassifierOptions classifier;
  classifier.preprocessing = setup.pixels;
  classifier.channels_last = plan.layout == "channels_last";
  classifier.label_smoothing = plan.label_smoothing;
  classifier.class_weights = tasks::class_weights(plan.class_weights, setup.folder.train, setup.folder.classes.size());
  auto model = std::make_unique<tasks::ImageClassifier>(std::move(network), std::move(classifier));
  model->to(setup.device);
  return model;
}

void check_first_batch(const ImageSetup& setup) {
  const auto source = setup.training_source({});
  const std::optional<core::Batch> batch = source->next();
  device::BatchFacts facts;
  facts.classes = static_cast<std::int64_t>(setup.folder.classes.size());
  facts.channels = setup.pixels.channels;
  device::check_batch(*setup.model, *batch, setup.device, facts);
}

}  // namespace

std::unique_ptr<core::BatchSource> ImageSetup::training_source(core::Position start) const {
  data::ImageLoaderOptions options;
  options.split = folder.train;
  options.channels = pixels.channels;
  options.policy = tasks::training_policy(plan.augment, pixels);
  options.batch = plan.batch;
  options.seed = static_cast<std::uint64_t>(plan.seed);
  options.drop_tail = plan.tail == "drop";
  options.threads = static_cast<int>(plan.threads);
  options.pinned = device.is_cuda();
  options.start = start;
  return std::make_unique<device::PlacedSource>(std::make_unique<data::ImageLoader>(std::move(options)), device);
}

std::unique_ptr<core::BatchSource> ImageSetup::evaluation_source(const data::ImageSplit& split) const {
  data::ImageLoaderOptions options;
  options.split = split;
  options.channels = pixels.channels;
  options.policy = tasks::evaluation_policy(pixels);
  options.batch = std::min<std::int64_t>(plan.microbatch, split.size());
  options.shuffle = false;
  options.threads = static_cast<int>(plan.threads);
  options.pinned = device.is_cuda();
  return std::make_unique<device::PlacedSource>(std::make_unique<data::ImageLoader>(std::move(options)), device);
}

at::ScalarType ImageSetup::autocast_dtype() const { return precision::autocast_dtype(plan.precision); }

ModelCard ImageSetup::card() const {
  ModelCard card;
  card.model = plan.model;
  card.classes = folder.classes;
  card.pixels = pixels;
  card.precision = plan.precision;
  card.layout = plan.layout;
  card.train_samples = folder.train.size();
  return card;
}

ImageSetup set_up_images(const Request& request, const train::Plan* saved, const Say& say) {
  if (request.data.empty()) {
    fail<ConfigError>("job.setup", "no data: give a folder, `stoker train DIR`");
  }
  ImageSetup setup;
  const auto* asked_device = request.options.find("device");
  const std::string wanted = saved != nullptr ? saved->device : asked_device != nullptr ? asked_device->value : "auto";
  const device::DeviceChoice choice = device::choose_device(wanted);
  setup.device = choice.device;
  setup.folder = open_data(request, saved, say);
  const tasks::PictureFacts pictures = tasks::look_at_pictures(setup.folder.train);
  train::Facts facts = gather_facts(request, setup.folder, pictures, choice);
  if (saved != nullptr) {
    facts.couples_samples = tasks::couples_samples(saved->model);
    train::check_repeatable(*saved, facts);
  }
  setup.plan = saved != nullptr ? *saved : train::resolve(request.options, facts);
  setup.pixels = tasks::preprocessing(static_cast<int>(setup.plan.image_size),
                                      tasks::network_channels(setup.plan.model, pictures));
  precision::apply({setup.plan.tf32, setup.plan.cudnn_benchmark, setup.plan.deterministic});
  setup.model = build_model(setup);
  for (const std::string& holder : device::backend_for(setup.device).busy_processes(setup.device)) {
    setup.notes.push_back(fmt::format("{} is shared: {}", setup.device.str(), holder));
  }
  at::set_num_threads(static_cast<int>(setup.plan.intra_op));
  check_first_batch(setup);
  if (saved == nullptr) {
    StepTrials trials(setup);
    train::measure(setup.plan, request.options, facts, trials);
  }
  if (setup.plan.half_weights) {
    precision::convert_to_half(setup.model->parameters(), setup.autocast_dtype());
  }
  at::set_num_threads(static_cast<int>(setup.plan.intra_op));
  return setup;
}

}  // namespace stoker::job
