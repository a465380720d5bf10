// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/tips/bench_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/nearest.h"
#include "stoker/base/philox.h"
#include "stoker/device/placement.h"
#include "stoker/models/cnn.h"
#include "stoker/models/encoder.h"
#include "stoker/models/gpt.h"
#include "stoker/models/mlp.h"
#include "stoker/models/resnet.h"
#include "stoker/models/unet.h"
#include "stoker/study/tips/masked_language_model.h"
#include "stoker/study/tips/pixel_classifier.h"
#include "stoker/tasks/image/classifier.h"
#include "stoker/tasks/text/model.h"

namespace stoker::study {
namespace {

constexpr std::uint32_t kKey = 0xBE7C;  // for the synthetic data

// Uniform integers below `below`, a function of shape and stream only.
template <typename T>
at::Tensor drawn(at::IntArrayRef shape, std::uint32_t below, std::uint32_t stream, at::ScalarType dtype) {
  at::Tensor result = at::empty(shape, dtype);
  T* out = result.data_ptr<T>();
  PhiloxBlock block{};
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    if (i % 4 == 0) {
      block = philox4x32({static_cast<std::uint32_t>(i / 4), stream, 0, 0}, {kKey, 0});
    }
    out[i] = static_cast<T>((std::uint64_t{block[static_cast<std::size_t>(i % 4)]} * below) >> 32);
  }
  return result;
}

at::Tensor drawn_bytes(at::IntArrayRef shape) { return drawn<std::uint8_t>(shape, 256, 1, at::kByte); }
at::Tensor drawn_ids(at::IntArrayRef shape, std::int64_t below, std::uint32_t stream) {
  return drawn<std::int64_t>(shape, static_cast<std::uint32_t>(below), stream, at::kLong);
}

core::Batch batch_of(std::int64_t samples) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(samples));
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  return core::Batch({}, std::move(indices));
}

struct Images {
  int channels, size, classes;
};

BenchModel image_model(const BenchOptions& options, const Images& images,
                       const std::function<std::unique_ptr<models::Network>(const models::ModelOptions&)>& make) {
  const auto [channels, size, classes] = images;
  const std::int64_t samples = options.batch;
  models::ModelOptions network{.classes = classes, .channels = channels, .image_size = size};
  network.seed = options.seed;
  network.conv_bias = options.conv_bias;
  tasks::ClassifierOptions classifier;
  classifier.preprocessing = {.channels = channels,
                              .image_size = size,
                              .resize = size,
                              .mean = std::vector<double>(static_cast<std::size_t>(channels), 0.5),
                              .std = std::vector<double>(static_cast<std::size_t>(channels), 0.25)};
  classifier.channels_last = options.channels_last;
  BenchModel bench{std::make_unique<tasks::ImageClassifier>(make(network), classifier), batch_of(samples)};
  bench.batch.set("image", drawn_bytes({samples, size, size, channels}));
  bench.batch.set("target", drawn_ids({samples}, classes, 2));
  bench.optimizer = {.name = "sgd", .weight_decay = 5e-4, .momentum = 0.9, .nesterov = true};
  bench.lr = 0.01;
  return bench;
}

BenchModel slim_resnet(const BenchOptions& options, bool norm) {
  return image_model(options, {3, 32, 10}, [norm](const models::ModelOptions& network) {
    return models::make_resnet(network, {.width = 16, .small_stem = true, .norm = norm});
  });
}

BenchModel unet(const BenchOptions& options) {
  constexpr std::int64_t kPixels = 64, kClasses = 4;
  models::UnetOptions network{.classes = kClasses, .width = 16, .depth = 3};
  network.conv_bias = options.conv_bias;
  network.seed = options.seed;
  BenchModel bench{std::make_unique<PixelClassifier>(models::make_unet(network), options.channels_last),
                   batch_of(options.batch)};
  bench.batch.set("image", drawn_bytes({options.batch, kPixels, kPixels, 3}));
  bench.batch.set("target", drawn_ids({options.batch, kPixels, kPixels}, kClasses, 2));
  bench.optimizer = {.name = "adamw"};
  bench.lr = 1e-3;
  return bench;
}

BenchModel gpt_model(const BenchOptions& options, std::int64_t vocabulary) {
  constexpr std::int64_t kTokens = 128;
  const std::int64_t samples = options.batch;
  models::GptOptions network{.vocabulary = vocabulary, .context = kTokens};
  network.attention = options.attention;
  network.open_head = options.loss_chunk > 0;
  network.seed = options.seed;
  BenchModel bench{
      std::make_unique<tasks::TextModel>(models::make_gpt(network), tasks::TextModelOptions{options.loss_chunk, {}}),
      batch_of(samples)};
  bench.batch.set("ids", drawn_ids({samples, kTokens}, vocabulary, 1));
  bench.batch.set("target", drawn_ids({samples, kTokens}, vocabulary, 2));
  bench.optimizer = {.name = "adamw", .weight_decay = 0.1};
  bench.lr = 1e-3;
  return bench;
}

BenchModel gpt(const BenchOptions& options) { return gpt_model(options, 256); }
BenchModel gpt_50k(const BenchOptions& options) { return gpt_model(options, 50257); }

// Rows of 16 to 64 tokens, the rest padded; the model predicts every seventh token.
BenchModel bert(const BenchOptions& options) {
  constexpr std::int64_t kVocabulary = 1000, kTokens = 64, kEvery = 7, kPassedOver = -100;
  models::EncoderOptions network{.vocabulary = kVocabulary, .context = kTokens};
  network.attention = options.attention;
  network.seed = options.seed;
  BenchModel bench{std::make_unique<MaskedLanguageModel>(models::make_encoder(network)), batch_of(options.batch)};
  const at::Tensor ids = drawn_ids({options.batch, kTokens}, kVocabulary, 1);
  const at::Tensor place = at::arange(kTokens, at::kLong);
  const at::Tensor seen = place.lt(drawn_ids({options.batch, 1}, kTokens - 15, 2).add(16));
  const at::Tensor said = seen.logical_and(place.remainder(kEvery).eq(0));
  bench.batch.set("ids", ids.masked_fill(said, 0));
  bench.batch.set("seen", seen);
  bench.batch.set("target", ids.masked_fill(said.logical_not(), kPassedOver));
  bench.optimizer = {.name = "adamw"};
  bench.lr = 1e-4;
  return bench;
}

using Make = BenchModel (*)(const BenchOptions&);

struct Entry {
  BenchModelInfo info;
  Make make;
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all{
      {{.name = "mlp", .text = "feed-forward 64-64-64-10, batch 32", .batch = 32},
       [](const BenchOptions& o) {
         return image_model(o, {1, 8, 10}, [](const auto& network) { return models::make_mlp(network, 64); });
       }},
      {{.name = "cnn",
        .text = "small residual network, 32 px, batch 64",
        .batch = 64,
        .convolutions = true,
        .batch_norm = true},
       [](const BenchOptions& o) {
         return image_model(o, {3, 32, 10}, [](const auto& network) { return models::make_cnn(network); });
       }},
      {{.name = "resnet18", .text = "64 px, batch 8", .batch = 8, .convolutions = true, .batch_norm = true},
       [](const BenchOptions& o) {
         return image_model(o, {3, 64, 100}, models::make_resnet18);
       }},
      {{.name = "resnet50", .text = "64 px, batch 8", .batch = 8, .convolutions = true, .batch_norm = true},
       [](const BenchOptions& o) {
         return image_model(o, {3, 64, 100}, models::make_resnet50);
       }},
      {{.name = "unet",
        .text = "3 levels from width 16, 64 px, batch 4",
        .batch = 4,
        .convolutions = true,
        .batch_norm = true},
       unet},
      {{.name = "bert", .text = "4 blocks of width 128, 16 rows of up to 64 tokens", .batch = 16, .attention = true},
       bert},
      {{.name = "gpt", .text = "4 blocks of width 128, 8 windows of 128 tokens", .batch = 8, .attention = true}, gpt},
      {{.name = "resnet34-slim",
        .text = "a quarter of the width, 32 px, batch 32",
        .batch = 32,
        .convolutions = true,
        .batch_norm = true,
        .listed = false},
       [](const BenchOptions& o) { return slim_resnet(o, true); }},
      {{.name = "resnet34-slim-no-norm",
        .text = "the same without batch norm",
        .batch = 32,
        .convolutions = true,
        .listed = false},
       [](const BenchOptions& o) { return slim_resnet(o, false); }},
      {{.name = "gpt-50k", .text = "gpt with 50,257 tokens", .batch = 4, .attention = true, .listed = false}, gpt_50k},
  };
  return all;
}

const Entry& entry(const std::string& name) {
  const auto found = std::ranges::find(entries(), name, [](const Entry& each) { return each.info.name; });
  if (found == entries().end()) {
    std::vector<std::string> names;
    std::ranges::transform(bench_models(), std::back_inserter(names), &BenchModelInfo::name);
    fail<ConfigError>("study.bench_model", "{}", unknown_name("model", name, names));
  }
  return *found;
}

}  // namespace

const std::vector<BenchModelInfo>& bench_models() {
  static const std::vector<BenchModelInfo> infos = [] {
    std::vector<BenchModelInfo> made;
    std::ranges::transform(entries(), std::back_inserter(made), &Entry::info);
    return made;
  }();
  return infos;
}

const BenchModelInfo& bench_model(const std::string& name) { return entry(name).info; }

BenchModel make_bench_model(const std::string& name, const BenchOptions& options) {
  BenchOptions filled = options;
  filled.batch = options.batch > 0 ? options.batch : bench_model(name).batch;
  BenchModel bench = entry(name).make(filled);
  if (options.dtype != at::kFloat) {
    bench.model->network().to(c10::kCPU, options.dtype);
  }
  if (!options.device.is_cpu()) {
    bench.model->to(options.device);
    bench.batch = device::move_batch(std::move(bench.batch), options.device);
  }
  bench.model->set_training(true);
  return bench;
}

}  // namespace stoker::study
