// SPDX-License-Identifier: Apache-2.0
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "measure_cases.h"
#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/data/image_decode.h"
#include "stoker/data/image_loader.h"
#include "stoker/data/tensor_source.h"

namespace stoker::bench {
namespace {

constexpr std::int64_t kRowsABatch = 512, kCifarSide = 32;

// The next batch's samples, whatever epoch it is of.
std::int64_t take(core::BatchSource& source) {
  std::optional<core::Batch> batch = source.next();
  if (!batch) {
    batch = source.next();
  }
  return batch.value().size();
}

// CIFAR-10's training pictures, uint8 [N, 32, 32, 3].
at::Tensor decoded(const data::ImageSplit& split, std::int64_t limit) {
  const std::int64_t count = std::min(limit, split.size());
  const at::Tensor pictures = at::empty({count, kCifarSide, kCifarSide, 3}, at::kByte);
  auto* out = pictures.mutable_data_ptr<std::uint8_t>();
  std::vector<std::byte> bytes;
  augment::Image image;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t sample = split.samples[static_cast<std::size_t>(i)];
    split.source->read(sample, bytes);
    data::decode_image(bytes, 3, {}, image, split.source->name(sample));
    if (image.width != kCifarSide || image.height != kCifarSide) {
      fail<DataError>("bench.loader_bench", "{} is no picture of CIFAR-10", split.source->name(sample));
    }
    out = std::copy(image.pixels.begin(), image.pixels.end(), out);
  }
  return pictures;
}

// The floor: rows of the sampler's order copied together, nothing drawn, nothing changed.
std::int64_t gather(const at::Tensor& pictures, const data::Sampler& sampler, core::Position& at,
                    std::vector<std::int64_t>& rows) {
  if (at.step == sampler.steps_per_epoch()) {
    at = {at.epoch + 1, 0};
  }
  sampler.positions(at.epoch, at.step++, rows);
  const auto bytes = static_cast<std::size_t>(pictures.stride(0));
  const at::Tensor batch = at::empty({static_cast<std::int64_t>(rows.size()), pictures.stride(0)}, at::kByte);
  const auto* from = pictures.const_data_ptr<std::uint8_t>();
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
  fail<IoError>("bench.loader_bench", "/proc/self/status does not tell RssAnon");
}

// As many samples as one likes, all of the same bytes.
class OnePicture final : public data::ByteSource {
 public:
  OnePicture(std::int64_t size, std::vector<std::byte> file) : size_(size), file_(std::move(file)) {}
  [[nodiscard]] std::int64_t size() const override { return size_; }
  void read(std::int64_t, std::vector<std::byte>& bytes) const override { bytes = file_; }
  [[nodiscard]] std::string_view key(std::int64_t) const override { return "class/one.jpg"; }
  [[nodiscard]] std::string name(std::int64_t index) const override { return "sample " + std::to_string(index); }

 private:
  std::int64_t size_;
  std::vector<std::byte> file_;
};

}  // namespace

// What is missing: a source of pictures in memory that crops and mirrors. Once data/ has one, it stands beside the
// gather here: "per_cpu_second" of so many batches of 512 on one thread, in turns with it.
Json ram(const Words& words) {
  at::set_num_threads(1);
  const data::ImageSplit split = data::open_image_folder(words.text("data"), {.val = 0}).train;
  const at::Tensor pictures = decoded(split, words.number("limit", split.size()));
  const data::Sampler sampler({.samples = pictures.size(0), .batch = kRowsABatch, .drop_tail = true});
  core::Position position;
  std::vector<std::int64_t> rows;
  const auto bare = [&] { return gather(pictures, sampler, position, rows); };
  (void)rate_of(0.1, bare);
  const Json floor = rate_of(words.seconds(), bare);
  return {{"waits", "no source in data/ keeps pictures in memory and crops and mirrors them"},
          {"gather_per_cpu_second", floor["per_cpu_second"]}};
}

// Columns as adult's: 6 numbers, 8 categories, a class.
Json table(const Words& words) {
  at::set_num_threads(1);
  const std::int64_t rows = words.number("rows", 48'842);
  data::TensorSourceOptions options;
  options.fields = {{"numbers", at::randn({rows, 6})},
                    {"categories", at::randint(40, {rows, 8}, at::kLong)},
                    {"target", at::randint(2, {rows}, at::kLong)}};
  options.batch = words.number("batch", kRowsABatch);
  data::TensorSource source(std::move(options));
  (void)rate_of(0.1, [&] { return take(source); });
  return rate_of(words.seconds(), [&] { return take(source); });
}

// 10^9 rows in one byte: dimension 0 of stride 0. Another source has warmed up the operators that a batch is made by.
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
    fail<ConfigError>("bench.loader_bench", "the source did not start where it was told to");
  }
  return {{"seconds", seconds}};
}

// From before the list of samples is made: a loader's list is part of what it takes. One picture, read before.
Json memory(const Words& words) {
  const data::ImageFolder folder = data::open_image_folder(words.text("data"), {.val = 0});
  std::vector<std::byte> file;
  folder.train.source->read(folder.train.samples.front(), file);
  const std::int64_t entries = words.number("entries", 100'000'000);
  const double before = anonymous_mb();
  data::ImageLoaderOptions options;
  options.split.source = std::make_shared<OnePicture>(entries, std::move(file));
  options.split.samples.resize(static_cast<std::size_t>(entries));
  std::iota(options.split.samples.begin(), options.split.samples.end(), std::int64_t{0});
  options.split.labels.assign(static_cast<std::size_t>(entries), 1);
  options.policy = {.crop = augment::Crop::kRandomResized, .flip = true};
  options.threads = static_cast<int>(words.number("threads", 1));
  const double row = 3.0 * options.policy.out_width * options.policy.out_height;
  const double ring = row * static_cast<double>(options.batch) * (options.depth + 1) * 1e-6;  // and the consumer's
  data::ImageLoader loader(std::move(options));
  double most = 0;
  for (int i = 0; i < 6; ++i) {
    const std::optional<core::Batch> batch = loader.next();
    most = std::max(most, anonymous_mb());
  }
  return {{"mb", std::max(0.0, most - before - ring)}, {"ring_mb", ring}, {"entries", entries}};
}

}  // namespace stoker::bench
