// SPDX-License-Identifier: Apache-2.0
// Threads read rows in any order: each block is mixed once, after its last row. A block with a gap stays unmixed.
#include "stoker/data/order/block_mixer.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "support/images.h"

namespace stoker::data {
namespace {

constexpr int kWidth = 7, kHeight = 5, kChannels = 3, kBytes = kWidth * kHeight * kChannels, kRows = 24;
const augment::Mix kMix{.mixup = 1, .cutmix = 1, .block = 4};

augment::Pixels first_of(std::vector<std::uint8_t>& rows) { return {rows.data(), kWidth, kHeight, kChannels}; }

void write(std::vector<std::uint8_t>& rows, int row) {
  const augment::Image image = testing::computed_image(kWidth, kHeight, kChannels, 31 * row);
  std::copy(image.pixels.begin(), image.pixels.end(), rows.begin() + row * kBytes);
}

// The expected rows: mixes one block after the other, without a BlockMixer.
std::vector<std::uint8_t> expected(const augment::MixKey& key, int gap) {
  std::vector<std::uint8_t> rows(kRows * kBytes), scratch;
  for (int row = 0; row < kRows; ++row) {
    if (row != gap) {
      write(rows, row);
    }
  }
  for (std::uint32_t block = 0; block < kRows / 4; ++block) {
    if (gap / 4 != static_cast<int>(block)) {
      augment::MixKey own = key;
      own.block += block;
      augment::Pixels first = first_of(rows);
      first.data += block * 4 * kBytes;
      augment::execute(augment::draw(kMix, kWidth, kHeight, own), first, scratch);
    }
  }
  return rows;
}

TEST(BlockMixer, ThreadsInAnyOrderMixEachBlockOnce) {
  BlockMixer mixer;
  for (std::uint32_t step = 0; step < 40; ++step) {
    const augment::MixKey key{.seed = 2, .epoch = 1, .step = step, .block = 5};
    const int gap = step % 3 == 0 ? static_cast<int>(step % kRows) : 1000;
    mixer.begin(kMix, kWidth, kHeight, key, kRows);
    std::vector<std::uint8_t> rows(kRows * kBytes);
    {
      std::vector<std::jthread> threads;
      for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, thread] {
          std::vector<std::uint8_t> scratch;
          for (int i = thread; i < kRows; i += 4) {
            const int row = (i * 7 + static_cast<int>(step)) % kRows;
            if (row != gap) {
              write(rows, row);
            }
            mixer.row_read(row, row != gap, first_of(rows), scratch);
          }
        });
      }
    }
    ASSERT_EQ(rows, expected(key, gap)) << step;
    std::vector<std::int64_t> targets(kRows), mixed(kRows);
    std::vector<float> shares(kRows);
    std::iota(targets.begin(), targets.end(), 100);
    mixer.pair(targets.data(), kRows, mixed.data(), shares.data());
    for (int row = 0; row < kRows; ++row) {
      const auto at = static_cast<std::size_t>(row);
      const bool alone = row / 4 == gap / 4;
      EXPECT_EQ(mixed[at] == targets[at], alone);
      EXPECT_EQ((mixed[at] - 100) / 4, row / 4);
      EXPECT_TRUE(!alone || shares[at] == 1);
    }
  }
}

TEST(BlockMixer, WithoutBlocksNothingIsMixed) {
  BlockMixer mixer;
  std::vector<std::uint8_t> rows(kRows * kBytes), scratch;
  const std::vector<std::uint8_t> before = rows;
  mixer.row_read(3, true, first_of(rows), scratch);  // before any begin()
  mixer.begin(kMix, kWidth, kHeight, {}, 0);
  mixer.row_read(3, true, first_of(rows), scratch);
  EXPECT_EQ(rows, before);
  const std::int64_t target = 4;
  std::int64_t mixed = 0;
  float share = 0;
  mixer.pair(&target, 1, &mixed, &share);
  EXPECT_EQ(mixed, 4);
  EXPECT_EQ(share, 1);
}

}  // namespace
}  // namespace stoker::data
