// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "measure_cases.h"
#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/data/decode/image_decode.h"
#include "stoker/data/folder/folder_index.h"
#include "stoker/data/load/image_loader.h"
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
  if (words.number("rows", 0) != 0) {
    options.rows = std::make_shared<data::RowIndex>(*options.split.source, data::RowIndexOptions{});
  }
  if (words.number("replace", 0) != 0) {
    options.bad = {.on_bad = data::OnBad::kReplace, .budget = 0.05};
  }
  return options;
}

data::ImageSplit opened(const Words& words) { return data::open_image_folder(words.text("data"), {.val = 0}).train; }

// Reads every file once, which warms the page cache. decode() uses the bytes.
std::vector<std::vector<std::byte>> read_all(const data::ImageSplit& split) {
  std::vector<std::vector<std::byte>> files(static_cast<std::size_t>(split.size()));
  for (std::size_t i = 0; i < files.size(); ++i) {
    split.source->read(split.samples[static_cast<std::int64_t>(i)], files[i]);
  }
  return files;
}

// Makes two files of the folder unreadable: removes one and replaces the other by a folder.
void take_away(const Words& words) {
  const std::filesystem::path folder = words.text("data");
  if (words.has("remove")) {
    std::filesystem::remove(folder / words.text("remove"));
  }
  if (words.has("block")) {
    std::filesystem::remove(folder / words.text("block"));
    std::filesystem::create_directory(folder / words.text("block"));
  }
}

// The next batch, also across the end of an epoch.
core::Batch take(data::ImageLoader& loader) {
  std::optional<core::Batch> batch = loader.next();
  if (!batch) {
    batch = loader.next();
  }
  if (!batch || (*batch)["image"].size(1) != kSide) {
    fail<ConfigError>("bench.loader_bench", "the loader returned no image");
  }
  return std::move(*batch);
}

}  // namespace

// With replace=1 it runs whole epochs, so that each contains all of the damage. "bad": the number of images found bad.
Json loader(const Words& words) {
  data::ImageSplit split = opened(words);
  (void)read_all(split);
  take_away(words);
  data::ImageLoaderOptions options = options_for(std::move(split), words);
  std::set<std::int64_t> bad;
  options.bad.listener = [&bad](const core::BadSample& each) { bad.insert(each.index); };
  const bool whole_epochs = options.bad.on_bad == data::OnBad::kReplace;
  data::ImageLoader loader(std::move(options));
  const std::int64_t ahead = std::max<std::int64_t>(4, words.number("rows", 0) * loader.steps_per_epoch());
  for (std::int64_t i = 0; i < ahead; ++i) {
    (void)take(loader);
  }
  Json figures = rate_of(words.seconds(), [&] {
    if (!whole_epochs) {
      return take(loader).size();
    }
    std::int64_t samples = 0;
    while (const std::optional<core::Batch> batch = loader.next()) {
      samples += batch->size();
    }
    return samples;
  });
  const core::SourceFigures spent = loader.figures().value();
  for (const core::StageFigures& stage : spent.stages) {
    figures["stage_ms"][stage.name] =
        1e3 * stage.seconds / static_cast<double>(std::max<std::int64_t>(spent.samples, 1));
  }
  figures["bad"] = bad.size();
  return figures;
}

Json decode(const Words& words) {
  const std::vector<std::vector<std::byte>> files = read_all(opened(words));
  const bool own = words.has("path") && words.text("path") == "own";
  data::ImageDecoder decoder(own ? data::JpegPath::kFastest : data::JpegPath::kLibrary);
  const auto pass = [&] {
    for (const std::vector<std::byte>& file : files) {
      const auto [width, height] = decoder.open(file, 3, {}, "a file");
      (void)decoder.decode({0, 0, width, height}, "a file");
    }
    return static_cast<std::int64_t>(files.size());
  };
  pass();
  return rate_of(words.seconds(), pass);  // whole passes: images differ in size
}

// Opens a folder that was scanned before: its index is in cache=FOLDER.
Json first(const Words& words) {
  const data::IndexOptions index{.cache = words.text("cache"), .from_files = 1};
  const auto open = [&] { return data::open_image_folder(words.text("data"), {.val = 0}, {}, index).train; };
  (void)read_all(open());
  if (!data::find_known(words.text("data"), index)) {
    fail<ConfigError>("bench.loader_bench", "{} has no index in {}", words.text("data"), words.text("cache"));
  }
  const Stopwatch watch;
  data::ImageSplit split = open();
  const double opening = watch.seconds();
  data::ImageLoader loader(options_for(std::move(split), words));
  (void)take(loader);
  return {{"seconds", watch.seconds()}, {"of_these_opening", opening}};
}

// How much longer than usual the consumer waits for the first batch of an epoch, in units of the usual time. It takes
// batches as fast as they come. Batches are small, so that there are many, and all have the same size.
Json boundary(const Words& words) {
  data::ImageSplit split = opened(words);
  (void)read_all(split);
  data::ImageLoaderOptions options = options_for(std::move(split), words);
  options.batch = std::min<std::int64_t>(16, options.split.size());
  options.drop_tail = true;
  data::ImageLoader loader(std::move(options));
  if (loader.steps_per_epoch() < 3) {
    fail<ConfigError>("bench.loader_bench", "mode=boundary needs at least 3 batches of 16 images");
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
