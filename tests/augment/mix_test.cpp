// SPDX-License-Identifier: Apache-2.0
// MixUp and CutMix: mixing in place equals a plain twin with a second batch. Partners form one cycle. Shares follow
// their Beta distribution and match the pixels.
#include "stoker/augment/mix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "stoker/base/error.h"
#include "support/images.h"

namespace stoker::augment {
namespace {

using testing::computed_image;

struct Rows {
  int width, height, channels;
  std::vector<std::uint8_t> bytes;
  [[nodiscard]] std::size_t row() const { return static_cast<std::size_t>(width * height * channels); }
};

Rows some_rows(int rows, int width, int height, int channels) {
  Rows all{width, height, channels, {}};
  for (int i = 0; i < rows; ++i) {
    const Image image = computed_image(width, height, channels, 17 * i);
    all.bytes.insert(all.bytes.end(), image.pixels.begin(), image.pixels.end());
  }
  return all;
}

Rows mixed(Rows rows, const BlockDraw& drawn) {
  std::vector<std::uint8_t> scratch;
  execute(drawn, {rows.bytes.data(), rows.width, rows.height, rows.channels}, scratch);
  return rows;
}

TEST(Mix, InPlaceEqualsASecondBatch) {
  for (const auto& [mix, channels] : {std::pair{Mix{.mixup = 0.4, .block = 8}, 3},
                                      {Mix{.mixup = 1, .block = 2}, 1},
                                      {Mix{.cutmix = 1, .block = 8}, 3},
                                      {Mix{.cutmix = 0.5, .block = 5}, 1}}) {
    for (std::uint32_t step = 0; step < 20; ++step) {
      const Rows rows = some_rows(mix.block, 13, 9, channels);
      const BlockDraw drawn = draw(mix, 13, 9, {.seed = 3, .epoch = 1, .step = step});
      ASSERT_EQ(drawn.rows, mix.block);
      const Rows result = mixed(rows, drawn);
      const double own_share = drawn.own_share();
      int foreign = 0;
      for (std::size_t i = 0; i < rows.bytes.size(); ++i) {
        const std::size_t row = i / rows.row(), within = i % rows.row();
        const int x = static_cast<int>(within) / channels % 13, y = static_cast<int>(within) / channels / 13;
        const double own = rows.bytes[i], other = rows.bytes[drawn.partner[row] * rows.row() + within];
        if (drawn.cut) {
          const bool inside = x >= drawn.left && x < drawn.right && y >= drawn.top && y < drawn.bottom;
          ASSERT_EQ(result.bytes[i], inside ? other : own);
          foreign += row == 0 && inside;
        } else {
          ASSERT_NEAR(result.bytes[i], own * own_share + other * (1 - own_share), 0.5001);
        }
      }
      if (drawn.cut) {
        EXPECT_NEAR(own_share, 1 - foreign / (13.0 * 9 * channels), 1e-5);
      }
    }
  }
}

TEST(Mix, PartnersMakeOneCycleAndEveryOneIsAsLikely) {
  const Mix mix{.mixup = 1, .block = 4};
  std::map<std::array<int, 4>, int> cycles;
  for (std::uint32_t block = 0; block < 6000; ++block) {
    const BlockDraw drawn = draw(mix, 8, 8, {.seed = 9, .epoch = 0, .step = 7, .block = block});
    std::array<int, 4> partners{};
    std::set<int> seen;
    for (int row = 0, i = 0; i < 4; ++i) {
      partners[static_cast<std::size_t>(i)] = drawn.partner[static_cast<std::size_t>(i)];
      row = drawn.partner[static_cast<std::size_t>(row)];
      seen.insert(row);
    }
    ASSERT_EQ(seen.size(), 4u);
    ++cycles[partners];
  }
  ASSERT_EQ(cycles.size(), 6u);  // (4 - 1)!
  for (const auto& [cycle, count] : cycles) {
    EXPECT_NEAR(count, 1000, 120);
  }
  const BlockDraw whole = draw({.mixup = 1, .block = 256}, 8, 8, {});
  EXPECT_EQ(std::set<int>(whole.partner.begin(), whole.partner.end()).size(), 256u);
}

// The Kolmogorov-Smirnov distance to the closed forms of Beta(1/2, 1/2), Beta(1, 1) and Beta(2, 2).
TEST(Mix, SharesFollowTheirBetaDistribution) {
  const auto arcsine = [](double x) { return 2 / M_PI * std::asin(std::sqrt(x)); };
  const auto uniform = [](double x) { return x; };
  const auto parabola = [](double x) { return x * x * (3 - 2 * x); };
  constexpr int kDraws = 20'000;
  const auto distance = [&](double alpha, const auto& cumulative) {
    std::vector<double> shares;
    for (std::uint32_t step = 0; step < kDraws; ++step) {
      shares.push_back(draw({.mixup = alpha, .block = 2}, 8, 8, {.seed = 5, .epoch = 1, .step = step}).own_share());
    }
    std::ranges::sort(shares);
    double most = 0;
    for (int i = 0; i < kDraws; ++i) {
      most = std::max(most, std::abs(cumulative(shares[static_cast<std::size_t>(i)]) - (i + 0.5) / kDraws));
    }
    return most;
  };
  const double limit = 1.63 / std::sqrt(kDraws);  // one sample in a hundred exceeds it by chance
  EXPECT_LT(distance(0.5, arcsine), limit);
  EXPECT_LT(distance(1, uniform), limit);
  EXPECT_LT(distance(2, parabola), limit);
  EXPECT_GT(distance(0.2, arcsine), 10 * limit);
  EXPECT_LE(draw({.mixup = 0.001, .block = 2}, 8, 8, {}).share, BlockDraw::kWhole);
}

TEST(Mix, BothTossACoinAndPlacesDiffer) {
  const Mix both{.mixup = 0.2, .cutmix = 1, .block = 8};
  int cuts = 0;
  for (std::uint32_t step = 0; step < 1000; ++step) {
    const BlockDraw drawn = draw(both, 32, 32, {.step = step});
    cuts += drawn.cut;
    ASSERT_FALSE(drawn == draw(both, 32, 32, {.step = step, .block = 1}));
    ASSERT_FALSE(drawn == draw(both, 32, 32, {.epoch = 1, .step = step}));
    ASSERT_TRUE(drawn.left >= 0 && drawn.left <= drawn.right && drawn.right <= 32);
    ASSERT_LE(drawn.share, BlockDraw::kWhole);
  }
  EXPECT_NEAR(cuts, 500, 65);
}

// Draws equal those of earlier versions and other machines.
TEST(Mix, RowsStayWhatTheyWere) {
  const Mix both{.mixup = 0.2, .cutmix = 1, .block = 8};
  std::vector<std::uint8_t> all;
  for (std::uint32_t step = 0; step < 64; ++step) {
    const BlockDraw drawn = draw(both, 13, 9, {.seed = 12, .epoch = 5, .step = step, .block = 3});
    const Rows result = mixed(some_rows(8, 13, 9, 3), drawn);
    all.insert(all.end(), result.bytes.begin(), result.bytes.end());
  }
  EXPECT_EQ(testing::fnv1a(all), 9885911215211313118U);
}

TEST(Mix, BlocksDivideTheSlice) {
  EXPECT_EQ(mix_block(512), 16);
  EXPECT_EQ(mix_block(100), 10);
  EXPECT_EQ(mix_block(97), 97);
  EXPECT_EQ(mix_block(257), 1);
  EXPECT_NO_THROW(check(Mix{}, 97));
  EXPECT_NO_THROW(check(Mix{.mixup = 0.2, .block = 32}, 128));
  EXPECT_THROW(check(Mix{.mixup = 0.2, .block = 32}, 100), ConfigError);
  EXPECT_THROW(check(Mix{.mixup = 0.2, .block = 1}, 100), ConfigError);
  EXPECT_THROW(check(Mix{.mixup = 0.2, .block = 512}, 512), ConfigError);
  EXPECT_THROW(check(Mix{.mixup = -1}, 64), ConfigError);
  EXPECT_THROW(check(Mix{.cutmix = NAN}, 64), ConfigError);
}

}  // namespace
}  // namespace stoker::augment
