// SPDX-License-Identifier: Apache-2.0
// Does the loader name the stage that was slowed down?
#include <ATen/ops/empty.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "measure_cases.h"
#include "small_images.h"
#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/core/phase.h"
#include "stoker/data/decode/image_decode.h"
#include "stoker/data/decode/png_encode.h"
#include "stoker/data/load/image_loader.h"
#include "stoker/device/prefetcher.h"
#include "stoker/observe/feeding.h"
#include "stoker/train/feed_watch.h"

namespace stoker::bench {
namespace {

using data::Stage;

constexpr double kSleepMs = 4;      // a slowed-down stage, per sample: several times the time of all other stages
constexpr double kHalfSleepMs = 2;  // a second stage, slowed down by half as much
constexpr double kStepMs = 20;      // the consumer's step, per batch

// Writes a few of the images as PNG, in two classes.
void write_pngs(const std::string& from, const std::filesystem::path& to) {
  if (std::filesystem::exists(to)) {
    return;
  }
  const data::ImageSplit split = data::open_image_folder(from, {.val = 0}).train;
  std::vector<std::byte> bytes;
  augment::Image image;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(split.size(), 2 * kSmallBatch); ++i) {
    split.source->read(split.samples[i], bytes);
    data::decode_image(bytes, 3, {}, image, split.source->name(i));
    const std::filesystem::path folder = to / (i % 2 == 0 ? "even" : "odd");
    std::filesystem::create_directories(folder);
    const std::vector<std::byte> png = data::encode_png(image.view());
    std::ofstream(folder / fmt::format("{}.png", i), std::ios::binary)
        .write(reinterpret_cast<const char*>(png.data()), static_cast<std::streamsize>(png.size()));
  }
}

// A device with slow copies, on a thread of its own.
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
  std::string name;                                                      // of the stage that the loader should name
  std::optional<Stage> stage = {};                                       // of the loader, for each sample
  std::optional<Stage> less = {};                                        // another one, slowed down by half as much
  std::int64_t one_sample = -1;                                          // slow down only this sample, by 1.5 s
  double copy_ms = 0, step_ms = kStepMs, log_ms = 0, checkpoint_ms = 0;  // per batch; a checkpoint every tenth
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

// Two stages at once. The right answer is the longer stage of the part (loader, copy or step) that makes the others
// wait: with two threads a slowed-down stage takes 64 ms per batch.
struct SlowPair {
  std::string other;  // slowed down together with slow.name
  Slow slow;
};

std::vector<SlowPair> slow_pairs() {
  return {{"resize", {.name = "JPEG decode", .stage = Stage::kJpeg, .less = Stage::kResize}},
          {"JPEG decode", {.name = "resize", .stage = Stage::kResize, .less = Stage::kJpeg}},
          {"step", {.name = "read", .stage = Stage::kRead, .step_ms = 40}},
          {"read", {.name = "step", .stage = Stage::kRead, .step_ms = 200}},
          {"read", {.name = "copy", .stage = Stage::kRead, .copy_ms = 150}}};
}

// The calls that the training loop makes around a source; sleeps stand for the work.
observe::Feeding watched(const Slow& slow, const Words& words, int threads) {
  const std::string folder = words.text(slow.png ? "png" : "data");
  data::ImageLoaderOptions options = small_images(data::open_image_folder(folder, {.val = 0}).train, threads);
  if (slow.stage) {
    options.on_stage = [slow](Stage stage, std::int64_t sample) {
      if (stage == slow.less) {
        sleep_ms(kHalfSleepMs);
      } else if (stage == *slow.stage && (slow.one_sample < 0 || sample == slow.one_sample)) {
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
    const std::optional<core::Batch> batch = [&] {
      const core::PhaseScope waiting(core::Phase::kInput);
      return source->next();
    }();
    if (!batch) {
      continue;
    }
    sleep_ms(slow.step_ms);
    {
      const core::PhaseScope logging(core::Phase::kLogging);
      sleep_ms(slow.log_ms);
    }
    if (slow.checkpoint_ms > 0 && step % 10 == 0) {
      const core::PhaseScope saving(core::Phase::kCheckpoint);
      sleep_ms(slow.checkpoint_ms);
    }
    feed.step_done(step);
  }
  return observe::explain(feed.total(0));
}

}  // namespace

Json verdict(const Words& words) {
  write_pngs(words.text("data"), words.text("png"));
  const int threads = static_cast<int>(words.number("threads", 2));
  Json named = Json::object(), named_of_two = Json::object();
  int right = 0, right_of_two = 0;
  for (const Slow& slow : slow_downs()) {
    const observe::Feeding feeding = watched(slow, words, threads);
    right += feeding.stage == slow.name ? 1 : 0;
    named[slow.name] = feeding.words;
  }
  for (const auto& [other, slow] : slow_pairs()) {
    const observe::Feeding feeding = watched(slow, words, threads);
    right_of_two += feeding.stage == slow.name ? 1 : 0;
    named_of_two[fmt::format("{}, and {}", slow.name, other)] = feeding.words;
  }
  return {{"right", right},
          {"of", slow_downs().size()},
          {"named", named},
          {"two_at_once", {{"right", right_of_two}, {"of", slow_pairs().size()}, {"named", named_of_two}}}};
}

}  // namespace stoker::bench
