// SPDX-License-Identifier: Apache-2.0
// The rows of the next batches arrive complete and in order, computed by the consumer or ahead of time by a thread, for
// a device that copies late. An error arrives in its place.
#include "stoker/resident/rows.h"

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "support/late_device.h"
#include "support/made_up_images.h"

namespace stoker::resident {
namespace {

using augment::WindowDraw;
using testing::LateStream;
using testing::MadeUpImages;

constexpr augment::ImageShape kShape{1000, 4, 4, 1};

// Compares the batches of the next chunk with those requested one by one. Returns the number of its batches.
std::int64_t check_chunk(ResidentRows& ahead, const MadeUpImages& images, core::Position& position) {
  const ResidentChunk chunk = ahead.next();
  if (position.step == images.steps_per_epoch()) {
    position = {position.epoch + 1, 0};
  }
  EXPECT_EQ(chunk.first, position);
  augment::WindowRows rows;
  for (std::int64_t batch = 0; batch < chunk.batches(); ++batch) {
    EXPECT_EQ(chunk.begins[static_cast<std::size_t>(batch)], static_cast<std::int64_t>(rows.indices.size()));
    images.add_rows(position.epoch, position.step++, rows);
  }
  EXPECT_EQ(chunk.indices, rows.indices);
  const auto* targets = chunk.targets.const_data_ptr<std::int64_t>();
  EXPECT_EQ(std::vector<std::int64_t>(targets, targets + chunk.targets.numel()), rows.targets);
  const auto* windows = static_cast<const WindowDraw*>(chunk.windows.const_data_ptr());
  EXPECT_EQ(std::vector<WindowDraw>(windows, windows + chunk.windows.size(0)), rows.windows);
  return chunk.batches();
}

TEST(ResidentRows, ComeInOrderWithAndWithoutAThread) {
  const auto images = std::make_shared<MadeUpImages>(kShape, 32);  // 32 batches per epoch, the last of 8
  for (const core::Position start : {core::Position{0, 0}, core::Position{3, 17}, core::Position{0, 32}}) {
    for (const bool threaded : {false, true}) {
      auto stream = threaded ? std::make_unique<LateStream>() : nullptr;
      const LateStream* late = stream.get();
      ResidentRows ahead(images, start, std::move(stream));
      core::Position position = start;
      EXPECT_EQ(check_chunk(ahead, *images, position), 1) << "the first chunk must be ready soon";
      std::int64_t most = 0;
      for (int chunk = 1; chunk < 20; ++chunk) {
        most = std::max(most, check_chunk(ahead, *images, position));
      }
      EXPECT_EQ(most, 32) << "a chunk is from one epoch";
      EXPECT_GE(position.epoch, start.epoch + 10);
      if (late != nullptr) {
        EXPECT_EQ(late->used, 2 * 20);
      }
    }
  }
}

TEST(ResidentRows, ChunksGrowUpToALimit) {
  const auto images = std::make_shared<MadeUpImages>(augment::ImageShape{1'000'000, 1, 1, 1}, 1000);
  ResidentRows ahead(images, {}, nullptr);
  std::vector<std::int64_t> batches;
  for (int chunk = 0; chunk < 10; ++chunk) {
    batches.push_back(ahead.next().batches());
  }
  EXPECT_EQ(batches, (std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 64, 66, 66, 66}));  // 66,000: the first above 2^16
}

class NoSuchEpoch final : public augment::ResidentImages {
 public:
  [[nodiscard]] augment::ImageShape shape() const override { return kShape; }
  [[nodiscard]] std::int64_t steps_per_epoch() const override { return 1; }
  void add_rows(std::int64_t epoch, std::int64_t, augment::WindowRows& rows) const override {
    if (epoch == 2) {
      fail<DataError>("test", "cannot be read");
    }
    rows.indices.push_back(epoch);
    rows.targets.push_back(epoch);
    rows.windows.emplace_back();
  }
  void read(std::int64_t, std::span<std::uint8_t>) const override {}
};

TEST(ResidentRows, AnErrorComesAtItsPlace) {
  ResidentRows ahead(std::make_shared<NoSuchEpoch>(), {}, std::make_unique<LateStream>());
  EXPECT_EQ(ahead.next().indices, (std::vector<std::int64_t>{0}));
  EXPECT_EQ(ahead.next().indices, (std::vector<std::int64_t>{1}));
  EXPECT_THROW((void)ahead.next(), DataError);
  EXPECT_THROW((void)ahead.next(), DataError) << "it is made again, and fails again";
}

}  // namespace
}  // namespace stoker::resident
