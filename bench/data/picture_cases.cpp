// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "measure_cases.h"
#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/data/image_decode.h"
#include "stoker/data/image_loader.h"
#include "stoker/study/paired.h"

namespace stoker::bench {
namespace {

constexpr int kSide = 224;
constexpr std::int64_t kBatch = 64;

data::ImageLoaderOptions options_for(data::ImageSplit split, const Words& words) {
  data::ImageLoaderOptions options;
  options.split = std::move(split);
  options.policy = {.crop = augment::Crop::kRandomResized, .out_width = kSide, .out_height = kSide, .flip = true};
  options.batch = kBatch;
  options.threads = static_cast<int>(words.number("threads", 1));
  if (words.number("replace", 0) != 0) {
    options.bad = {.on_bad = data::OnBad::kReplace, .budget = 0.05};
  }
  return options;
}

data::ImageSplit opened(const Words& words) { return data::open_image_folder(words.text("data"), {.val = 0}).train; }

// Every file once, so that the page cache is warm; and for decode(), which wants them in memory.
std::vector<std::vector<std::byte>> read_all(const data::ImageSplit& split) {
  std::vector<std::vector<std::byte>> files(static_cast<std::size_t>(split.size()));
  for (std::size_t i = 0; i < files.size(); ++i) {
    split.source->read(split.samples[static_cast<std::int64_t>(i)], files[i]);
  }
  return files;
}

// The next batch, whatever epoch it is of.
core::Batch take(data::ImageLoader& loader) {
  std::optional<core::Batch> batch = loader.next();
  if (!batch) {
    batch = loader.next();
  }
  if (!batch || (*batch)["image"].size(1) != kSide) {
    fail<ConfigError>("bench.loader_bench", "the loader gave no picture");
  }
  return std::move(*batch);
}

}  // namespace

Json loader(const Words& words) {
  data::ImageSplit split = opened(words);
  (void)read_all(split);
  data::ImageLoader loader(options_for(std::move(split), words));
  for (int i = 0; i < 4; ++i) {
    (void)take(loader);
  }
  Json figures = rate_of(words.seconds(), [&] { return take(loader).size(); });
  const core::SourceFigures spent = loader.figures().value();
  for (const core::StageFigures& stage : spent.stages) {
    figures["stage_ms"][stage.name] =
        1e3 * stage.seconds / static_cast<double>(std::max<std::int64_t>(spent.samples, 1));
  }
  return figures;
}

Json decode(const Words& words) {
  const std::vector<std::vector<std::byte>> files = read_all(opened(words));
  data::ImageDecoder decoder;
  const auto pass = [&] {
    for (const std::vector<std::byte>& file : files) {
      const auto [width, height] = decoder.open(file, 3, {}, "a file");
      (void)decoder.decode({0, 0, width, height}, "a file");
    }
    return static_cast<std::int64_t>(files.size());
  };
  pass();
  return rate_of(words.seconds(), pass);  // whole passes: pictures differ in size
}

Json first(const Words& words) {
  (void)read_all(opened(words));
  const Stopwatch watch;
  data::ImageSplit split = opened(words);
  const double open = watch.seconds();
  data::ImageLoader loader(options_for(std::move(split), words));
  (void)take(loader);
  return {{"seconds", watch.seconds()}, {"of_these_opening", open}};
}

// How much longer than usual the consumer waits for the first batch of an epoch, if it takes batches as fast as they
// come: in units of the usual time. Small batches, so that there are many; all of one size.
Json boundary(const Words& words) {
  data::ImageSplit split = opened(words);
  (void)read_all(split);
  data::ImageLoaderOptions options = options_for(std::move(split), words);
  options.batch = std::min<std::int64_t>(16, options.split.size());
  options.drop_tail = true;
  data::ImageLoader loader(std::move(options));
  if (loader.steps_per_epoch() < 3) {
    fail<ConfigError>("bench.loader_bench", "mode=boundary needs at least 3 batches of 16 pictures");
  }
  (void)take(loader);
  std::vector<double> usual, ends;
  const Stopwatch watch;
  while (watch.seconds() < words.seconds() || ends.size() < 3) {
    const bool end = loader.position().step == loader.steps_per_epoch();
    const Stopwatch gap;
    (void)take(loader);
    (end ? ends : usual).push_back(gap.seconds());
  }
  const double batch = study::median_of(usual);
  return {{"batches", study::median_of(ends) / batch - 1}, {"batch_seconds", batch}, {"epochs", ends.size()}};
}

}  // namespace stoker::bench
