// SPDX-License-Identifier: Apache-2.0
// Batches, ends of epochs and errors come through in order; a slot goes back when its copy is done and not before. The
// device here is a thread that copies late.
#include "stoker/device/prefetcher.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>

#include "stoker/base/error.h"
#include "support/late_device.h"

namespace stoker::device {
namespace {

constexpr std::int64_t kRows = 64;
constexpr std::uint8_t kPoison = 255;

using testing::LateStream;

// Three batches per epoch, in slots that are poisoned when they come back. The second batch of epoch 1 cannot be read.
class PoisonedSlots final : public core::BatchSource {
 public:
  std::optional<core::Batch> next() override {
    if (position_.step == 3) {
      position_ = {position_.epoch + 1, 0};
      return std::nullopt;
    }
    const core::Position position = position_;
    ++position_.step;
    if (position == core::Position{1, 1}) {
      fail<DataError>("test", "cannot be read");
    }
    std::array<std::uint8_t, kRows>& slot = slots_[static_cast<std::size_t>(given_++ % 32)];
    slot.fill(value(position));
    core::Batch batch(position, std::vector<std::int64_t>(kRows));
    batch.set_part(kRows, 3 * kRows);  // as for rank 1 of 3
    batch.set("image", at::from_blob(
                           slot.data(), {kRows}, [&](void*) { slot.fill(kPoison), ++returned; }, at::kByte));
    batch.set({"boxes", at::tensor({1, 2, 3}), core::Layout::kRagged, offsets()});
    return batch;
  }
  std::optional<core::SourceFigures> figures() const override {
    core::SourceFigures figures;
    figures.samples = 7;
    return figures;
  }
  static std::uint8_t value(core::Position position) {
    return static_cast<std::uint8_t>(10 * position.epoch + position.step);
  }
  static at::Tensor offsets() {
    std::vector<std::int64_t> each(kRows + 1, 3);
    each[0] = 0;
    return at::tensor(each, at::kLong);
  }
  static inline std::atomic<int> returned = 0;

 private:
  core::Position position_;
  std::int64_t given_ = 0;
  std::array<std::array<std::uint8_t, kRows>, 32> slots_{};
};

void check(core::BatchSource& source, int epochs, int first = 0) {
  for (int epoch = first; epoch < first + epochs; ++epoch) {
    for (int step = 0; step < 3; ++step) {
      const core::Position position{epoch, step};
      if (position == core::Position{1, 1}) {
        EXPECT_THROW((void)source.next(), DataError);
        continue;
      }
      const std::optional<core::Batch> batch = source.next();
      ASSERT_TRUE(batch.has_value()) << epoch << " " << step;
      EXPECT_EQ(batch->position(), position);
      EXPECT_EQ(batch->first_row(), kRows) << "dropout depends on it";
      EXPECT_EQ(batch->global_size(), 3 * kRows);
      EXPECT_TRUE((*batch)["image"].eq(PoisonedSlots::value(position)).all().item<bool>()) << epoch << " " << step;
      EXPECT_TRUE((*batch)["boxes"].equal(at::tensor({1, 2, 3})));
      EXPECT_TRUE(batch->find("boxes")->offsets.equal(PoisonedSlots::offsets()));
      EXPECT_EQ(batch->find("boxes")->layout, core::Layout::kRagged);
    }
    EXPECT_FALSE(source.next().has_value());
  }
}

TEST(Prefetcher, SlotsGoBackWhenTheirCopyIsDoneAndNotBefore) {
  PoisonedSlots::returned = 0;
  auto stream = std::make_unique<LateStream>();
  LateStream& late = *stream;
  Prefetcher source(std::make_unique<PoisonedSlots>(), std::move(stream));
  check(source, 8);
  EXPECT_EQ(late.used, (8 * 3 - 1) * 2);
  EXPECT_GE(PoisonedSlots::returned, 8 * 3 - 1 - 8);
  const core::SourceFigures figures = source.figures().value();
  EXPECT_EQ(figures.samples, 7);
  EXPECT_GT(figures.copy_seconds, 0);
}

TEST(Prefetcher, EndsAtAnyMoment) {
  for (int taken = 0; taken < 6; ++taken) {
    std::optional<core::Batch> kept;
    {
      Prefetcher source(std::make_unique<PoisonedSlots>(), std::make_unique<LateStream>());
      for (int i = 0; i < std::min(taken, 3); ++i) {
        kept = source.next();
      }
    }
    if (kept) {
      EXPECT_TRUE((*kept)["image"].eq(PoisonedSlots::value(kept->position())).all().item<bool>());
    }
  }
}

// The events of its copies fail, like all events of a lost device.
class LostStream final : public testing::LateStream {
 public:
  class LostEvent final : public Event {
   public:
    void record() override {}
    void wait() const override { fail<DeviceError>("test", "lost"); }
    bool ready() const override { fail<DeviceError>("test", "lost"); }
    double elapsed_ms(const Event&) const override { fail<DeviceError>("test", "lost"); }
  };
  std::unique_ptr<Event> mark(bool) override { return std::make_unique<LostEvent>(); }
  void await(Event&) override {}
};

TEST(Prefetcher, ALostDeviceIsAnErrorAndNoEndOfTheProcess) {
  PoisonedSlots::returned = 0;
  {
    Prefetcher source(std::make_unique<PoisonedSlots>(), std::make_unique<LostStream>());
    EXPECT_TRUE(source.next().has_value());
    EXPECT_THROW((void)source.next(), DeviceError);
  }  // ends while copies are under way; nothing can tell when they are done
  EXPECT_EQ(PoisonedSlots::returned, 0);
}

// No memory for a batch's second field.
class FullStream final : public testing::LateStream {
 public:
  explicit FullStream(std::vector<at::Tensor>& copies) : copies_(copies) {}
  at::Tensor copy(const at::Tensor& host) override {
    if (copies_.size() % 2 == 1) {
      fail<OutOfMemory>("test", "full");
    }
    return copies_.emplace_back(LateStream::copy(host));
  }

 private:
  std::vector<at::Tensor>& copies_;
};

TEST(Prefetcher, ABatchWhoseCopyFailsIsKeptForTheCopiesThatWereBegun) {
  std::vector<at::Tensor> copies;
  {
    Prefetcher source(std::make_unique<PoisonedSlots>(), std::make_unique<FullStream>(copies));
    EXPECT_THROW((void)source.next(), OutOfMemory);
  }
  EXPECT_TRUE(copies.at(0).eq(PoisonedSlots::value({0, 0})).all().item<bool>());
}

// With once, all slots of a finished epoch have been returned, and the next epoch begins only when it is requested.
TEST(Prefetcher, MadeForOneEpochItAsksForOthersWhenItIsAsked) {
  for (const int epochs : {1, 3}) {
    PoisonedSlots::returned = 0;
    {
      Prefetcher source(std::make_unique<PoisonedSlots>(), std::make_unique<LateStream>(), /*once=*/true);
      for (int epoch = 0; epoch < epochs; ++epoch) {
        check(source, 1, epoch);
      }
    }
    EXPECT_EQ(PoisonedSlots::returned, epochs == 1 ? 3 : 8) << "batches of an epoch that was not requested";
  }
}

// The twin uses the loader's own memory and no thread.
TEST(Prefetcher, OnACpuBatchesPassThrough) {
  const auto source = prefetched(std::make_unique<PoisonedSlots>(), c10::Device(c10::DeviceType::CPU));
  check(*source, 2);
  PoisonedSlots::returned = 0;
  {
    const std::optional<core::Batch> batch = source->next();
    EXPECT_EQ(PoisonedSlots::returned, 0);
  }
  EXPECT_EQ(PoisonedSlots::returned, 1);
}

}  // namespace
}  // namespace stoker::device
