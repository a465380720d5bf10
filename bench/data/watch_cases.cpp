// SPDX-License-Identifier: Apache-2.0
// Whether the loader knows itself: does it name the stage that was slowed down, does it foretell what more threads
// bring, and does it find as many threads as the best fixed number.
#include <ATen/ops/empty.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "measure_cases.h"
#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/data/image_decode.h"
#include "stoker/data/image_loader.h"
#include "stoker/data/png_encode.h"
#include "stoker/device/prefetcher.h"
#include "stoker/observe/feeding.h"
#include "stoker/train/feed_watch.h"

namespace stoker::bench {
namespace {

using data::Stage;

constexpr int kSide = 64;
constexpr std::int64_t kBatch = 32;
constexpr double kSleepMs = 4;  // a slowed stage, per sample: several times what all others take together
constexpr double kStepMs = 20;  // the consumer's step, per batch

void sleep_ms(double ms) { std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms)); }

data::ImageLoaderOptions options_for(const std::string& folder, int threads) {
  data::ImageLoaderOptions options;
  options.split = data::open_image_folder(folder, {.val = 0}).train;
  options.policy = {.crop = augment::Crop::kRandomResized, .out_width = kSide, .out_height = kSide, .flip = true};
  options.policy.operations = {augment::Grey{.probability = 1}};
  options.mix = {.mixup = 0.2};
  options.batch = kBatch;
  options.threads = threads;
  return options;
}

// A few of the pictures as PNG, two classes of them.
void write_pngs(const std::string& from, const std::filesystem::path& to) {
  if (std::filesystem::exists(to)) {
    return;
  }
  const data::ImageSplit split = data::open_image_folder(from, {.val = 0}).train;
  std::vector<std::byte> bytes;
  augment::Image image;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(split.size(), 2 * kBatch); ++i) {
    split.source->read(split.samples[i], bytes);
    data::decode_image(bytes, 3, {}, image, split.source->name(i));
    const std::filesystem::path folder = to / (i % 2 == 0 ? "even" : "odd");
    std::filesystem::create_directories(folder);
    const std::vector<std::byte> png = data::encode_png(image.view());
    std::ofstream(folder / fmt::format("{}.png", i), std::ios::binary)
        .write(reinterpret_cast<const char*>(png.data()), static_cast<std::streamsize>(png.size()));
  }
}

// A device of which copies take their time, on a thread of its own.
class SlowCopies final : public device::CopyStream {
 public:
  explicit SlowCopies(double ms) : ms_(ms) {}
  at::Tensor copy(const at::Tensor& host) override { return host; }
  at::Tensor host(at::IntArrayRef sizes, at::ScalarType type) override { return at::empty(sizes, type); }
  at::Tensor room(std::int64_t bytes) override { return at::empty({bytes}, at::kByte); }
  void copy(const at::Tensor& host, const at::Tensor& there) override { there.copy_(host); }
  std::unique_ptr<device::Event> mark(bool timing) override {
    if (timing && std::exchange(begun_, !begun_)) {  // the second of a batch's two timed marks
      sleep_ms(ms_);
    }
    auto event = device::backend_for(c10::Device(c10::DeviceType::CPU)).make_event(c10::DeviceType::CPU, timing);
    event->record();
    return event;
  }
  void await(device::Event&) override {}
  void used_here(const at::Tensor&) override {}

 private:
  double ms_;
  bool begun_ = false;
};

class Nobody final : public core::EventEmitter {
 public:
  void emit(core::Event) override {}
};

// What is slowed down, and by how much.
struct Slow {
  std::string name;                                                      // of the stage that has to be named
  std::optional<Stage> stage = {};                                       // of the loader, each sample
  std::int64_t one_sample = -1;                                          // that stage of this sample alone, for seconds
  double copy_ms = 0, step_ms = kStepMs, log_ms = 0, checkpoint_ms = 0;  // each batch; a checkpoint each tenth
  bool png = false;
};

std::vector<Slow> slow_downs() {
  return {{.name = "open", .stage = Stage::kOpen},
          {.name = "read", .stage = Stage::kRead},
          {.name = "JPEG decode", .stage = Stage::kJpeg},
          {.name = "PNG decode", .stage = Stage::kPng, .png = true},
          {.name = "resize", .stage = Stage::kResize},
          {.name = "augment", .stage = Stage::kAugment},
          {.name = "collate", .stage = Stage::kCollate},
          {.name = "copy", .copy_ms = 150},
          {.name = "step", .step_ms = 200},
          {.name = "log", .log_ms = 100},
          {.name = "checkpoint", .checkpoint_ms = 1500},
          {.name = "one sample", .stage = Stage::kRead, .one_sample = 40}};
}

// The training loop's calls around a source, with sleep for work.
observe::Feeding watched(const Slow& slow, const Words& words, int threads) {
  data::ImageLoaderOptions options = options_for(words.text(slow.png ? "png" : "data"), threads);
  if (slow.stage) {
    options.on_stage = [slow](Stage stage, std::int64_t sample) {
      if (stage == *slow.stage && (slow.one_sample < 0 || sample == slow.one_sample)) {
        sleep_ms(slow.one_sample < 0 ? kSleepMs : 1500);
      }
    };
  }
  std::unique_ptr<core::BatchSource> source = std::make_unique<data::ImageLoader>(std::move(options));
  if (slow.copy_ms > 0) {
    source = std::make_unique<device::Prefetcher>(std::move(source), std::make_unique<SlowCopies>(slow.copy_ms));
  }
  Nobody nobody;
  train::FeedWatch feed(*source, nobody);
  feed.start();
  const Stopwatch watch;
  for (std::int64_t step = 1; watch.seconds() < words.seconds(); ++step) {
    const Stopwatch waiting;
    const std::optional<core::Batch> batch = source->next();
    feed.add(train::LoopWork::kWait, waiting.seconds());
    if (!batch) {
      continue;
    }
    sleep_ms(slow.step_ms);
    const Stopwatch logging;
    sleep_ms(slow.log_ms);
    feed.add(train::LoopWork::kLog, logging.seconds());
    if (slow.checkpoint_ms > 0 && step % 10 == 0) {
      const Stopwatch saving;
      sleep_ms(slow.checkpoint_ms);
      feed.add(train::LoopWork::kCheckpoint, saving.seconds());
    }
    feed.step_done(step);
  }
  return observe::explain(feed.total(0));
}

// So many of the cores that the process began with, for threads that are made from here on.
void use_cores(int cores) {
  static const cpu_set_t all = [] {
    cpu_set_t begun;
    ::sched_getaffinity(0, sizeof(begun), &begun);
    return begun;
  }();
  cpu_set_t some;
  CPU_ZERO(&some);
  for (int core = 0, taken = 0; core < CPU_SETSIZE && taken < cores; ++core) {
    if (CPU_ISSET(core, &all)) {
      CPU_SET(core, &some);
      ++taken;
    }
  }
  ::sched_setaffinity(0, sizeof(some), &some);
}

core::Batch take(core::BatchSource& source) {
  std::optional<core::Batch> batch = source.next();
  return batch ? std::move(*batch) : std::move(source.next().value());
}

// Samples a second, and what was spent.
std::pair<double, core::SourceFigures> run_for(core::BatchSource& source, double seconds, double consumer_ms) {
  for (int i = 0; i < 4; ++i) {
    (void)take(source);
  }
  const core::SourceFigures before = source.figures().value();
  const Stopwatch watch;
  std::int64_t samples = 0;
  while (watch.seconds() < seconds) {
    samples += take(source).size();
    if (consumer_ms > 0) {
      sleep_ms(consumer_ms);
    }
  }
  return {static_cast<double>(samples) / watch.seconds(), core::between(before, source.figures().value())};
}

// A work load of autotune's.
struct Load {
  std::string name;
  bool kept = false;       // pictures that stay decoded
  double read_ms = 0;      // that each read sleeps
  double consumer_ms = 0;  // a batch
};

data::ImageLoaderOptions options_for(const Load& load, const Words& words, int threads, int depth, int cores) {
  data::ImageLoaderOptions options = options_for(words.text("data"), threads);
  options.depth = depth;
  options.cores = cores;
  if (load.kept) {
    options.store = std::make_shared<data::PixelStore>(options.split.source->size(), std::int64_t{1} << 30);
  }
  if (load.read_ms > 0) {
    options.on_stage = [ms = load.read_ms](Stage stage, std::int64_t) {
      if (stage == Stage::kRead) {
        sleep_ms(ms);
      }
    };
  }
  return options;
}

}  // namespace

Json verdict(const Words& words) {
  write_pngs(words.text("data"), words.text("png"));
  const int threads = static_cast<int>(words.number("threads", 2));
  Json named = Json::object();
  int right = 0;
  for (const Slow& slow : slow_downs()) {
    const observe::Feeding feeding = watched(slow, words, threads);
    right += feeding.stage == slow.name ? 1 : 0;
    named[slow.name] = feeding.words;
  }
  return {{"right", right}, {"of", slow_downs().size()}, {"named", named}};
}

Json foretell(const Words& words) {
  const auto error = [](double foretold, double seen) { return foretold / seen - 1; };
  Json figures;
  const double seconds = words.seconds();
  use_cores(1);
  core::SourceFigures spent;
  {
    data::ImageLoader one(options_for(words.text("data"), 1));
    spent = run_for(one, seconds, 0).second;
  }
  const double two_cores = observe::loader_rate(spent, 2, 2);
  use_cores(2);
  {
    data::ImageLoader two(options_for(words.text("data"), 2));
    figures["cores_off"] = error(two_cores, run_for(two, seconds, 0).first);
  }
  const Load disk{.name = "slow disk", .read_ms = 10};
  {
    data::ImageLoader one(options_for(disk, words, 1, 4, 0));
    spent = run_for(one, seconds, 0).second;
  }
  {
    data::ImageLoader eight(options_for(disk, words, 8, 4, 0));
    figures["sleeping_off"] = error(observe::loader_rate(spent, 8, 2), run_for(eight, seconds, 0).first);
  }
  return figures;
}

Json autotune(const Words& words) {
  const std::vector<Load> loads = {{.name = "cheap", .kept = true},
                                   {.name = "decode-bound"},
                                   {.name = "slow disk", .read_ms = 10},
                                   {.name = "slow consumer", .consumer_ms = 30}};
  const int cores = static_cast<int>(words.number("cores", 2));
  Json figures = Json::object();
  for (const Load& load : loads) {
    double best = 0;
    std::string way;
    for (const int threads : {1, 2, 4, 8, 16}) {
      if (threads > cores && load.read_ms == 0) {
        continue;  // auto may not
      }
      for (const int depth : {2, 4}) {
        data::ImageLoader loader(options_for(load, words, threads, depth, 0));
        if (const double rate = run_for(loader, words.seconds(), load.consumer_ms).first; rate > best) {
          best = rate;
          way = fmt::format("{} threads, depth {}", threads, depth);
        }
      }
    }
    data::ImageLoader loader(options_for(load, words, 1, 0, cores));
    (void)run_for(loader, 20, load.consumer_ms);
    const auto [rate, spent] = run_for(loader, 2 * words.seconds(), load.consumer_ms);
    figures[load.name] = {
        {"auto", rate}, {"threads", spent.threads}, {"best", best}, {"way", way}, {"share", rate / best}};
  }
  return figures;
}

}  // namespace stoker::bench
