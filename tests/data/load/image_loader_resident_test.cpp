// SPDX-License-Identifier: Apache-2.0
// The batches made from images on a device equal those of the loader bit by bit, for every crop and flip that devices
// support, and every order, tail, rank and start. The tests use the CPU twin of a device.
#include "stoker/data/load/image_loader_resident.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "stoker/base/error.h"
#include "stoker/data/order/weighted_sampler.h"
#include "stoker/device/backend.h"
#include "stoker/resident/source.h"
#include "support/images.h"
#include "support/loader_batches.h"
#include "support/temp_folder.h"

namespace stoker::data {
namespace {

using testing::expect_same;
using testing::run;
using testing::small_png;
using testing::TempFolder;

constexpr int kCalls = 14;  // two epochs of 5 batches, and the start of the third

class ResidentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 23; ++i) {
      folder_.write((i % 3 == 0 ? "a/" : "b/") + std::to_string(i) + ".png", small_png(i, 12, 10));
    }
    options_.split = open_image_folder(folder_.path(), {.val = 0}).train;
    options_.policy = {.crop = augment::Crop::kPad, .out_width = 12, .out_height = 10, .pad = 3, .flip = true};
    options_.batch = 5;
    options_.seed = 3;
  }

  static std::unique_ptr<resident::ResidentSource> twin(const ImageLoaderOptions& options,
                                                        std::unique_ptr<core::BatchSource> loader = nullptr) {
    return std::make_unique<resident::ResidentSource>(std::move(loader), std::make_shared<ResidentSplit>(options),
                                                      c10::Device(c10::kCPU), options.start);
  }
  static void expect_loaders_batches(const ImageLoaderOptions& options, int calls = kCalls) {
    const auto expected = run(options, calls);
    const auto source = twin(options);
    for (std::size_t call = 0; call < expected.size(); ++call) {
      SCOPED_TRACE(call);
      expect_same(source->next(), expected[call]);
    }
  }

  TempFolder folder_;
  ImageLoaderOptions options_;
};

TEST_F(ResidentTest, BatchesAreTheLoaders) {
  for (const augment::Crop crop : {augment::Crop::kNone, augment::Crop::kPad}) {
    for (int switches = 0; switches < 32; ++switches) {
      options_.policy.crop = crop;
      options_.policy.flip = (switches & 1) != 0;
      options_.policy.alternate = (switches & 2) != 0;
      options_.shuffle = (switches & 4) != 0;
      options_.drop_tail = (switches & 8) != 0;
      options_.channels = (switches & 16) != 0 ? 1 : 3;
      SCOPED_TRACE(fmt::format("crop {}, switches {}", static_cast<int>(crop), switches));
      expect_loaders_batches(options_);
    }
  }
}

TEST_F(ResidentTest, RanksHaveTheirSlices) {
  for (const int ranks : {2, 4, 8}) {  // some of 8 ranks have no row of the tail
    options_.batch = 8;
    options_.ranks = ranks;
    for (options_.rank = 0; options_.rank < ranks; ++options_.rank) {
      SCOPED_TRACE(fmt::format("rank {} of {}", options_.rank, ranks));
      expect_loaders_batches(options_);
    }
  }
}

TEST_F(ResidentTest, BeginsAnywhere) {
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int step = 0; step <= 5; ++step) {
      options_.start = {epoch, step};
      SCOPED_TRACE(fmt::format("start at {}.{}", epoch, step));
      expect_loaders_batches(options_);
    }
  }
}

TEST_F(ResidentTest, CopiesOfAnImageAreDrawnForThemselves) {
  std::vector<double> weights(23, 1.0);
  weights[4] = 20;
  options_.order = std::make_shared<WeightedSampler>(WeightedSamplerOptions{.weights = weights, .batch = 5, .seed = 3});
  expect_loaders_batches(options_);
}

TEST_F(ResidentTest, ImagesOfOtherSizesLieThereScaled) {
  for (int i = 0; i < 23; ++i) {
    folder_.write((i % 3 == 0 ? "a/" : "b/") + std::to_string(i) + ".png", small_png(i, 7 + i, 31 - i));
  }
  for (const auto interpolation : {augment::Interpolation::kBilinear, augment::Interpolation::kBicubic}) {
    options_.policy.interpolation = interpolation;
    expect_loaders_batches(options_);
  }
}

TEST_F(ResidentTest, NobodySeesTheChangeFromTheLoader) {
  options_.store = std::make_shared<PixelStore>(options_.split.source->size(), 1 << 20);
  options_.threads = 1;
  ImageLoader expected(options_);
  const auto source = twin(options_, std::make_unique<ImageLoader>(options_));
  EXPECT_FALSE(source->resident());
  int epochs = 0;
  for (int more = 3; more > 0; more -= source->resident()) {
    ASSERT_LT(++epochs, 100'000) << "the images never became resident";
    for (int call = 0; call < 6; ++call) {
      SCOPED_TRACE(fmt::format("epoch {}, call {}, resident {}", epochs, call, source->resident()));
      expect_same(source->next(), expected.next());
    }
  }
  const core::SourceFigures figures = source->figures().value();
  EXPECT_GE(figures.samples, 2 * 23) << "at least two epochs came from the loader";
  EXPECT_EQ(figures.threads, 0);
}

TEST_F(ResidentTest, ADamagedImageIsTheLoadersBusiness) {
  folder_.write("b/13.png", "no image");
  options_.bad.on_bad = OnBad::kReplace;
  options_.bad.budget = 0.1;
  ImageLoader expected(options_);
  const auto source = twin(options_, std::make_unique<ImageLoader>(options_));
  for (int call = 0; call < 60; ++call) {
    expect_same(source->next(), expected.next());
  }
  EXPECT_FALSE(source->resident());
  EXPECT_THROW((void)twin(options_), DataError);
}

// Images that need half of the free memory, twice the permitted share. read() does nothing: it must not be called.
class TooMany final : public augment::ResidentImages {
 public:
  explicit TooMany(const ImageLoaderOptions& options) : some_(options) {}
  [[nodiscard]] augment::ImageShape shape() const override {
    augment::ImageShape shape = some_.shape();
    const c10::Device cpu(c10::kCPU);
    shape.images = device::backend_for(cpu).memory(cpu).free / 2 / (shape.bytes() / shape.images);
    return shape;
  }
  [[nodiscard]] std::int64_t steps_per_epoch() const override { return some_.steps_per_epoch(); }
  void add_rows(std::int64_t epoch, std::int64_t step, augment::WindowRows& rows) const override {
    some_.add_rows(epoch, step, rows);
  }
  void read(std::int64_t, std::span<std::uint8_t>) const override {}

 private:
  ResidentSplit some_;
};

TEST_F(ResidentTest, ADeviceWithoutRoomKeepsTheLoader) {
  const auto too_many = std::make_shared<TooMany>(options_);
  ASSERT_GT(too_many->shape().images, 23);
  ImageLoader expected(options_);
  resident::ResidentSource source(std::make_unique<ImageLoader>(options_), too_many, c10::Device(c10::kCPU), {});
  for (int call = 0; call < 30; ++call) {
    expect_same(source.next(), expected.next());
    if (call == 8) {  // after the first epoch: gives the thread that looks for room enough time
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  EXPECT_FALSE(source.resident());
  try {
    const resident::ResidentSource alone(nullptr, too_many, c10::Device(c10::kCPU), {});
    FAIL() << "no error";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(" for them; set resident=off"));
  }
}

TEST_F(ResidentTest, RefusesWhatItCannotMake) {
  const auto refused = [&](auto change) {
    ImageLoaderOptions options = options_;
    change(options);
    EXPECT_THROW((void)twin(options), ConfigError);
  };
  refused([](auto& o) { o.policy.crop = augment::Crop::kRandomResized; });
  refused([](auto& o) { o.policy.operations = {augment::Grey{}}; });
  refused([](auto& o) { o.mix.mixup = 1; });
  refused([](auto& o) { o.policy.shrink = true; });
  refused([](auto& o) { o.start = {0, 6}; });
  refused([](auto& o) { o.batch = 0; });
}

// Two epochs of the demo's 6,000 images, more rows than the first chunks have: both sources have the same hash.
TEST(Resident, OneHashForMemoryAndDevice) {
  ImageLoaderOptions options;
  options.split = open_image_folder(testing::source_folder() / "examples/data/fashion-mnist-6000.tar").train;
  options.channels = 1;
  options.policy = {.crop = augment::Crop::kPad, .out_width = 28, .out_height = 28, .flip = true, .alternate = true};
  options.batch = 64;
  options.store = std::make_shared<PixelStore>(options.split.source->size(), 1 << 30);
  const auto hash = [&](core::BatchSource& source) {
    std::uint64_t value = 0;
    for (int epoch = 0; epoch < 2; ++epoch) {
      while (const std::optional<core::Batch> batch = source.next()) {
        for (const core::Field& field : batch->fields()) {
          value = value * 31 + testing::fnv1a({static_cast<const std::uint8_t*>(field.values.const_data_ptr()),
                                               field.values.nbytes()});
        }
        for (const std::int64_t index : batch->indices()) {
          value = value * 31 + static_cast<std::uint64_t>(index);
        }
      }
    }
    return value;
  };
  ImageLoader loader(options);
  resident::ResidentSource source(nullptr, std::make_shared<ResidentSplit>(options), c10::Device(c10::kCPU), {});
  const std::uint64_t expected = hash(loader);
  EXPECT_EQ(hash(source), expected);
  RecordProperty("hash", fmt::format("{:016x}", expected));
}

}  // namespace
}  // namespace stoker::data
