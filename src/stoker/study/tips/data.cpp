// SPDX-License-Identifier: Apache-2.0
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "stoker/base/fmt.h"
#include "stoker/data/decode/png_encode.h"
#include "stoker/data/load/image_loader.h"
#include "stoker/device/prefetcher.h"
#include "stoker/precision/process_switches.h"
#include "stoker/study/tips/step_way.h"
#include "stoker/study/tips/tip_rows.h"

namespace stoker::study {
namespace {

constexpr std::int64_t kNumbersPerStep = 1 << 20;  // 4 MiB, the size of a mask or of noise for a batch of images
constexpr int kImages = 64, kPixels = 96;          // number of different images, and their width
constexpr std::int64_t kBatch = 32, kBatches = 12;

// PNG files in memory: waves and a little noise. Decoding takes as long as for photographs of that size.
class MadeUpImages final : public data::ByteSource {
 public:
  explicit MadeUpImages(std::int64_t size) : size_(size) {
    augment::Image image;
    image.reshape(kPixels, kPixels, 3);
    for (int number = 0; number < kImages; ++number) {
      std::uint8_t* out = image.pixels.data();
      for (int i = 0; i < kPixels * kPixels * 3; ++i) {
        const int x = i / 3 % kPixels, y = i / 3 / kPixels;
        *out++ = static_cast<std::uint8_t>((x * (number % 7 + 1) + y * (number % 5 + 1) + i * 7919 % 13) / 4);
      }
      files_.push_back(data::encode_png(image.view()));
    }
  }
  [[nodiscard]] std::int64_t size() const override { return size_; }
  void read(std::int64_t index, std::vector<std::byte>& bytes) const override {
    bytes = files_[static_cast<std::size_t>(index) % files_.size()];
  }
  [[nodiscard]] std::string_view key(std::int64_t) const override { return "made-up.png"; }
  [[nodiscard]] std::string name(std::int64_t index) const override { return "synthetic " + std::to_string(index); }

 private:
  std::int64_t size_;
  std::vector<std::vector<std::byte>> files_;
};

struct LoadHabits {
  int threads = 0;
  bool shuffle = true;
};

// An epoch from files to weights. Each call creates a new loader, so that its threads do not work during the other
// way's turn.
Way loading_way(const TipCase& tip_case, const LoadHabits& habits) {
  const int threads = habits.threads;
  data::ImageLoaderOptions options;
  options.batch = tip_case.batch > 0 ? tip_case.batch : kBatch;
  options.split.source = std::make_shared<MadeUpImages>(options.batch * kBatches);
  options.split.samples = data::SampleList::first(options.split.source->size());
  options.split.labels = data::LabelList(std::vector{data::LabelRun{options.split.size(), 1}});
  options.policy = {.crop = augment::Crop::kRandomResized, .out_width = 32, .out_height = 32, .flip = true};
  options.threads = threads;
  options.shuffle = habits.shuffle;
  const StepOnBatches engine = engine_step(tip_case);
  Way way;
  way.side.call = [options, step = engine.step, threads, cores = tip_case.cores] {
    const precision::ProcessSwitches switches;
    at::set_num_threads(std::max(1, cores - threads));  // the engine divides cores this way
    data::ImageLoader loader(options);
    while (std::optional<core::Batch> batch = loader.next()) {
      step(std::move(*batch));
    }
  };
  way.side.finish = wait_for(tip_case.device);
  way.outcome = engine.outcome;
  return way;
}

// An epoch of batches that are ready in memory: the same batch again and again, so that loading is only copying.
class ReadyBatches final : public core::BatchSource {
 public:
  explicit ReadyBatches(const core::Batch& batch) : batch_(batch) {}
  [[nodiscard]] std::optional<core::Batch> next() override {
    return given_++ < kBatches ? std::optional(batch_.slice(0, batch_.size())) : std::nullopt;
  }

 private:
  const core::Batch& batch_;
  std::int64_t given_ = 0;
};

struct CopyHabits {
  bool pinned = true;
  bool ahead = true;  // on a separate stream and thread, during the previous step
};

// The batch of the model on the CPU. Without a GPU no memory is page-locked.
core::Batch ready_batch(const TipCase& tip_case, bool pinned) {
  const core::Batch made = make_bench_model(tip_case.model, {.dtype = tip_case.dtype, .batch = tip_case.batch}).batch;
  core::Batch ready(made.position(), made.indices());
  for (const core::Field& field : made.fields()) {
    const bool lock = pinned && tip_case.device.is_cuda();
    ready.set({field.name, lock ? field.values.pin_memory() : field.values, field.layout, field.offsets});
  }
  return ready;
}

Way copying_way(const TipCase& tip_case, const CopyHabits& habits) {
  const StepOnBatches engine = engine_step(tip_case);
  Way way;
  const auto batch = std::make_shared<const core::Batch>(ready_batch(tip_case, habits.pinned));
  way.side.call = [batch, step = engine.step, habits, device = tip_case.device] {
    std::unique_ptr<core::BatchSource> source = std::make_unique<ReadyBatches>(*batch);
    if (habits.ahead) {
      source = device::prefetched(std::move(source), device, /*once=*/true);
    }
    while (std::optional<core::Batch> next = source->next()) {
      step(std::move(*next));
    }
  };
  way.side.finish = wait_for(tip_case.device);
  way.outcome = engine.outcome;
  return way;
}

Tip about_copies(std::string id, std::string title, std::string without, std::string with, const CopyHabits& habits) {
  return {
      .id = std::move(id),
      .title = std::move(title),
      .without = std::move(without),
      .with = std::move(with),
      .need = Need::kGpu,
      .models = listed_models(),
      .make = [habits](const TipCase& tip_case, bool on) { return copying_way(tip_case, on ? CopyHabits{} : habits); },
      .own_threads = true};
}

}  // namespace

Tip created_on_device() {
  return {.id = "created-on-device",
          .title = "4 MiB per step created on the device",
          .without = "on the CPU, then copied",
          .with = "on the device",
          .need = Need::kGpu,
          .models = listed_models(),
          .make = [](const TipCase& tip_case, bool on) {
            return engine_way(tip_case, {.before = [device = tip_case.device, on] {
                                const at::Tensor made =
                                    at::empty({kNumbersPerStep}, at::TensorOptions(on ? device : at::kCPU)).uniform_();
                                (void)made.to(device);
                              }});
          }};
}

Tip loader_threads(int threads) {
  return {.id = threads == 1 ? "loader-1-thread" : "loader-" + std::to_string(threads) + "-threads",
          .title = threads == 1 ? "1 loader thread" : std::to_string(threads) + " loader threads",
          .without = "all threads compute",
          .with = fmt::format("{} load{}, the rest compute (at least 1)", threads, threads == 1 ? "s" : ""),
          .models = {"cnn"},
          .make = [threads](const TipCase& tip_case,
                            bool on) { return loading_way(tip_case, {.threads = on ? threads : 0}); },
          .own_threads = true};
}

Tip shuffled_order() {
  return {.id = "shuffled-order",
          .title = "shuffled samples, order computed per index",
          .without = "in order",
          .with = "shuffled",
          .models = {"cnn"},
          .make = [](const TipCase& tip_case, bool on) { return loading_way(tip_case, {.shuffle = on}); }};
}

Tip pinned_memory() {
  return about_copies("pinned-memory", "batches in pinned memory", "pageable", "pinned", {.pinned = false});
}

Tip async_copies() {
  return about_copies("async-copies", "copies during the computation", "before each step", "during the previous step",
                      {.ahead = false});
}

}  // namespace stoker::study
