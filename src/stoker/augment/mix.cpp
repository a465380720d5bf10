// SPDX-License-Identifier: Apache-2.0
#include "stoker/augment/mix.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

#include "stoker/base/counter_rng.h"
#include "stoker/base/error.h"

namespace stoker::augment {
namespace {

// Beta(alpha, alpha) from three uniform numbers, for every alpha and without rejection: Bailey's generator, Devroye,
// "Random variate generation in one line of code" (1996), section 4.
double symmetric_beta(double alpha, double u, double v, bool upper) {
  const double cosine = std::cos(2 * std::numbers::pi * v);
  const double half = 0.5 / std::sqrt(1 + 1 / ((std::pow(u, -1 / alpha) - 1) * cosine * cosine));
  return upper ? 0.5 + half : 0.5 - half;
}

void draw_rectangle(double lambda, double x, double y, int width, int height, BlockDraw& drawn) {
  const double side = 0.5 * std::sqrt(1 - lambda);
  const int half_width = static_cast<int>(side * width), half_height = static_cast<int>(side * height);
  const int centre_x = static_cast<int>(x * width), centre_y = static_cast<int>(y * height);
  drawn.left = std::max(centre_x - half_width, 0);
  drawn.top = std::max(centre_y - half_height, 0);
  drawn.right = std::min(centre_x + half_width, width);
  drawn.bottom = std::min(centre_y + half_height, height);
  const double area = static_cast<double>(drawn.right - drawn.left) * (drawn.bottom - drawn.top);
  const double all = static_cast<double>(width) * height;
  drawn.share = BlockDraw::kWhole - static_cast<std::uint32_t>(std::lround(area / all * BlockDraw::kWhole));
}

void blend(std::uint8_t* own, const std::uint8_t* other, std::ptrdiff_t bytes, std::uint32_t share) {
  const std::uint32_t rest = BlockDraw::kWhole - share, half = BlockDraw::kWhole / 2;
  for (std::ptrdiff_t i = 0; i < bytes; ++i) {
    own[i] = static_cast<std::uint8_t>((own[i] * share + other[i] * rest + half) >> 16);
  }
}

void paste(const BlockDraw& drawn, Pixels own, const std::uint8_t* other) {
  const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(drawn.left) * own.channels;
  const std::ptrdiff_t bytes = static_cast<std::ptrdiff_t>(drawn.right - drawn.left) * own.channels;
  for (int y = drawn.top; y < drawn.bottom; ++y) {
    std::memcpy(own.row(y) + first, other + y * own.stride() + first, static_cast<std::size_t>(bytes));
  }
}

}  // namespace

void check(const Mix& mix, std::int64_t slice) {
  const auto alpha = [](const char* name, double value) {
    if (!(value == 0 || (value >= 0.001 && value <= 1000))) {
      fail<ConfigError>("augment.mix", "{} must be 0 (off) or 0.001 to 1000, got {}", name, value);
    }
  };
  alpha("mixup", mix.mixup);
  alpha("cutmix", mix.cutmix);
  if (mix.on() && (mix.block < 2 || mix.block > Mix::kMostRows || slice % mix.block != 0)) {
    fail<ConfigError>("augment.mix", "a block must have 2 to {} rows and divide the {} rows of a rank's batch, got {}",
                      Mix::kMostRows, slice, mix.block);
  }
}

int mix_block(std::int64_t batch) {
  constexpr int kUsual = 16;
  for (int block = kUsual; block > 1; --block) {
    if (batch % block == 0) {
      return block;
    }
  }
  for (int block = kUsual + 1; block <= Mix::kMostRows; ++block) {
    if (batch % block == 0) {
      return block;
    }
  }
  return 1;
}

BlockDraw draw(const Mix& mix, int width, int height, const MixKey& key) {
  const std::uint64_t place = (std::uint64_t{key.step} << 32) | key.block;
  CounterRng random(key.seed, key.epoch, place, RandomOp::kMix);
  BlockDraw drawn;
  const bool heads = random.uniform() < 0.5;
  drawn.cut = mix.cutmix > 0 && (mix.mixup <= 0 || heads);
  const double u = random.uniform(), v = random.uniform();
  const bool upper = random.uniform() < 0.5;
  const double lambda = symmetric_beta(drawn.cut ? mix.cutmix : mix.mixup, u, v, upper);
  const double x = random.uniform(), y = random.uniform();
  if (drawn.cut) {
    draw_rectangle(lambda, x, y, width, height, drawn);
  } else {
    drawn.share = static_cast<std::uint32_t>(std::lround(lambda * BlockDraw::kWhole));
  }
  drawn.rows = mix.block;
  const auto rows = static_cast<std::uint32_t>(mix.block);
  for (std::uint32_t i = 0; i < rows; ++i) {
    drawn.partner[i] = static_cast<std::uint8_t>(i);
  }
  for (std::uint32_t i = rows - 1; i > 0; --i) {  // Sattolo: every one-cycle permutation is equally likely
    std::swap(drawn.partner[i], drawn.partner[random.below(i)]);
  }
  return drawn;
}

void execute(const BlockDraw& drawn, Pixels first, std::vector<std::uint8_t>& scratch) {
  const std::ptrdiff_t bytes = first.bytes();
  scratch.assign(first.data, first.data + bytes);
  int row = 0;
  do {  // along the cycle: a row is only written after the previous row has read it
    const int partner = drawn.partner[static_cast<std::size_t>(row)];
    Pixels own = first;
    own.data += row * bytes;
    const std::uint8_t* other = partner == 0 ? scratch.data() : first.data + partner * bytes;
    drawn.cut ? paste(drawn, own, other) : blend(own.data, other, bytes, drawn.share);
    row = partner;
  } while (row != 0);
}

}  // namespace stoker::augment
