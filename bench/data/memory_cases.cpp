// SPDX-License-Identifier: Apache-2.0
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "measure_cases.h"
#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/data/decode/image_decode.h"
#include "stoker/data/folder/split_draft.h"
#include "stoker/data/load/image_loader.h"
#include "stoker/data/load/tensor_source.h"
#include "stoker/data/order/sampler.h"
#include "stoker/study/paired.h"

namespace stoker::bench {
namespace {

constexpr std::int64_t kRowsPerBatch = 512, kCifarSide = 32;

// The number of samples of the next batch, also across the end of an epoch.
std::int64_t take(core::BatchSource& source) {
  std::optional<core::Batch> batch = source.next();
  if (!batch) {
    batch = source.next();
  }
  return batch.value().size();
}

// CIFAR-10's training images, uint8 [N, 32, 32, 3].
at::Tensor decoded(const data::ImageSplit& split, std::int64_t limit) {
  const std::int64_t count = std::min(limit, split.size());
  const at::Tensor images = at::empty({count, kCifarSide, kCifarSide, 3}, at::kByte);
  auto* out = images.mutable_data_ptr<std::uint8_t>();
  std::vector<std::byte> bytes;
  augment::Image image;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t sample = split.samples[i];
    split.source->read(sample, bytes);
    data::decode_image(bytes, 3, {}, image, split.source->name(sample));
    if (image.width != kCifarSide || image.height != kCifarSide) {
      fail<DataError>("bench.loader_bench", "{} is not an image of CIFAR-10", split.source->name(sample));
    }
    out = std::copy(image.pixels.begin(), image.pixels.end(), out);
  }
  return images;
}

// The set {0, ..., most - 1}, out of `size` numbers.
std::shared_ptr<const BitSet> first_of(std::int64_t size, std::int64_t most) {
  const auto set = std::make_shared<BitSet>(size);
  for (std::int64_t i = 0; i < most; ++i) {
    set->insert(i);
  }
  set->seal();
  return set;
}

// The lower limit: copies rows into a batch in the sampler's order, without draws or augmentation.
std::int64_t gather(const at::Tensor& images, const data::Sampler& sampler, core::Position& at,
                    std::vector<std::int64_t>& rows) {
  if (at.step == sampler.steps_per_epoch()) {
    at = {at.epoch + 1, 0};
  }
  sampler.positions(at.epoch, at.step++, rows);
  const auto bytes = static_cast<std::size_t>(images.stride(0));
  const at::Tensor batch = at::empty({static_cast<std::int64_t>(rows.size()), images.stride(0)}, at::kByte);
  const auto* from = images.const_data_ptr<std::uint8_t>();
  auto* to = batch.mutable_data_ptr<std::uint8_t>();
  for (const std::int64_t row : rows) {
    std::memcpy(to, from + static_cast<std::size_t>(row) * bytes, bytes);
    to += bytes;
  }
  return static_cast<std::int64_t>(rows.size());
}

// Anonymous memory of this process, MB.
double anonymous_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "RssAnon:") {
      double kilobytes = 0;
      status >> kilobytes;
      return kilobytes * 1024e-6;
    }
  }
  fail<IoError>("bench.loader_bench", "/proc/self/status has no RssAnon");
}

// Any number of samples, all with the same bytes.
class OneImage final : public data::ByteSource {
 public:
  OneImage(std::int64_t size, std::vector<std::byte> file) : size_(size), file_(std::move(file)) {}
  [[nodiscard]] std::int64_t size() const override { return size_; }
  void read(std::int64_t, std::vector<std::byte>& bytes) const override { bytes = file_; }
  [[nodiscard]] std::string_view key(std::int64_t) const override { return "class/one.jpg"; }
  [[nodiscard]] std::string name(std::int64_t index) const override { return "sample " + std::to_string(index); }

 private:
  std::int64_t size_;
  std::vector<std::byte> file_;
};

}  // namespace

// Images that stay decoded, cropped with padding and mirrored, on the caller's thread; and a bare gather. Short blocks
// take turns. Medians per batch.
Json ram(const Words& words) {
  at::set_num_threads(1);
  data::ImageSplit split = data::open_image_folder(words.text("data"), {.val = 0}).train;
  const std::int64_t limit = std::min(words.number("limit", split.size()), split.size());
  if (limit < split.size()) {
    split = data::part_of(split, first_of(split.size(), limit), true);
  }
  const at::Tensor images = decoded(split, limit);
  data::ImageLoaderOptions options;
  options.split = split;
  options.policy = {.crop = augment::Crop::kPad, .out_width = kCifarSide, .out_height = kCifarSide, .flip = true};
  options.batch = kRowsPerBatch;
  options.drop_tail = true;
  options.threads = 0;
  options.depth = 1;
  options.store = std::make_shared<data::PixelStore>(split.source->size(), std::int64_t{1} << 30);
  data::ImageLoader loader(options);
  while (loader.next()) {  // the first epoch decodes
  }
  const data::Sampler sampler({.samples = limit, .batch = kRowsPerBatch, .drop_tail = true});
  core::Position position;
  std::vector<std::int64_t> rows;
  study::PairingOptions pairing;
  pairing.seconds = 2 * words.seconds();
  pairing.least_pairs = 3, pairing.most_pairs = 10'000;
  pairing.block_seconds = 0.02;
  pairing.clock = study::Clock::kThreadCpu;  // both work on this thread only
  const study::Paired paired = study::time_in_turns({[&] { (void)gather(images, sampler, position, rows); }},
                                                    {[&] { (void)take(loader); }}, pairing);
  constexpr auto kRows = static_cast<double>(kRowsPerBatch);
  return {{"per_cpu_second", kRows / paired.second_seconds},
          {"gather_per_cpu_second", kRows / paired.first_seconds},
          {"pairs", paired.ratio.pairs}};
}

// Columns like adult's: 6 numbers, 8 categories, a class.
Json table(const Words& words) {
  at::set_num_threads(1);
  const std::int64_t rows = words.number("rows", 48'842);
  data::TensorSourceOptions options;
  options.fields = {{"numbers", at::randn({rows, 6})},
                    {"categories", at::randint(40, {rows, 8}, at::kLong)},
                    {"target", at::randint(2, {rows}, at::kLong)}};
  options.batch = words.number("batch", kRowsPerBatch);
  data::TensorSource source(std::move(options));
  (void)rate_of(0.1, [&] { return take(source); });
  return rate_of(words.seconds(), [&] { return take(source); });
}

// 10^9 rows in one byte: dimension 0 has stride 0. Another source has warmed up the operators that make a batch.
Json far(const Words& words) {
  at::set_num_threads(1);
  data::TensorSourceOptions options;
  options.fields = {{"value", at::zeros({1}, at::kByte).expand({words.number("samples", 1'000'000'000)})}};
  options.batch = 64;
  data::TensorSource warm(options);
  (void)take(warm);
  options.start = {0, words.number("step", 1'000'000)};
  const Stopwatch watch;
  data::TensorSource source(std::move(options));
  const std::optional<core::Batch> batch = source.next();
  const double seconds = watch.seconds();
  if (!batch || batch->position().step != words.number("step", 1'000'000)) {
    fail<ConfigError>("bench.loader_bench", "the source did not start at the given step");
  }
  return {{"seconds", seconds}};
}

// Counts from before the lists of samples and labels are made, because they are part of a loader's memory. A tenth of
// each of 1,000 classes is for validation, as for class folders. There is only one image, which is read beforehand.
Json memory(const Words& words) {
  constexpr std::int64_t kClasses = 1000;
  const data::ImageFolder given = data::open_image_folder(words.text("data"), {.val = 0});
  std::vector<std::byte> file;
  given.train.source->read(given.train.samples[0], file);
  const std::int64_t entries = words.number("entries", 100'000'000);
  const double before = anonymous_mb();
  data::ImageFolder folder;
  folder.classes.resize(kClasses);
  data::LabelRuns labels;
  for (std::int64_t c = 0; c < kClasses; ++c) {
    labels.add(entries * (c + 1) / kClasses - entries * c / kClasses, static_cast<std::uint32_t>(c));
  }
  folder.train = {"train", std::make_shared<OneImage>(entries, std::move(file)), data::SampleList::first(entries),
                  data::LabelList(labels.runs())};
  data::carve_validation(folder, {.val = 0.1});
  data::ImageLoaderOptions options;
  options.split = folder.train;
  options.policy = {.crop = augment::Crop::kRandomResized, .flip = true};
  options.threads = static_cast<int>(words.number("threads", 1));
  options.depth = 4;  // the default for such batches
  const double row = 3.0 * options.policy.out_width * options.policy.out_height;
  const double ring = row * static_cast<double>(options.batch) * (options.depth + 1) * 1e-6;  // + 1: the consumer's
  data::ImageLoader loader(std::move(options));
  double most = 0;
  for (int i = 0; i < 6; ++i) {
    const std::optional<core::Batch> batch = loader.next();
    most = std::max(most, anonymous_mb());
  }
  return {{"mb", std::max(0.0, most - before - ring)},
          {"ring_mb", ring},
          {"entries", entries},
          {"validating", folder.val.size()}};
}

// Only the opened folder counts, not what a scan needs for a moment.
Json open(const Words& words) {
  const data::IndexOptions index{.cache = words.text("cache")};
  const double before = anonymous_mb();
  const double cpu = process_cpu_s();
  const data::ImageFolder folder = data::open_image_folder(words.text("data"), {.val = 0}, {}, index);
  const double seconds = process_cpu_s() - cpu;
  return {{"cpu_seconds", seconds}, {"mb", anonymous_mb() - before}, {"images", folder.train.size()}};
}

}  // namespace stoker::bench
