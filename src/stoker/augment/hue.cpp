// SPDX-License-Identifier: Apache-2.0
#include "stoker/augment/hue.h"

#include <algorithm>
#include <array>

namespace stoker::augment {
namespace {

constexpr int kBits = 16;
constexpr std::int32_t kSextant = 1 << kBits, kCircle = 6 * kSextant;

// 2^24 / range, rounded: turns a quotient of bytes into a product, exact to 16 bits.
constexpr std::array<std::int32_t, 256> kReciprocals = [] {
  std::array<std::int32_t, 256> table{};
  for (std::int32_t range = 1; range < 256; ++range) {
    table[static_cast<std::size_t>(range)] = ((1 << 24) + range / 2) / range;
  }
  return table;
}();

// The position on the colour circle, 0 ... kCircle. range > 0.
std::int32_t hue_of(std::int32_t r, std::int32_t g, std::int32_t b, std::int32_t most, std::int32_t range) {
  const std::int32_t reciprocal = kReciprocals[static_cast<std::size_t>(range)];
  const auto share = [&](std::int32_t difference) { return (difference * reciprocal + 128) >> 8; };
  if (most == r) {
    const std::int32_t hue = share(g - b);
    return hue < 0 ? hue + kCircle : hue;
  }
  return most == g ? 2 * kSextant + share(b - r) : 4 * kSextant + share(r - g);
}

// value: 8 bits and kBits of fraction, times 255.999 / 255, truncated. 1027 / 2^18 is 0.999 / 255.
std::uint8_t to_byte(std::int32_t value) {
  return static_cast<std::uint8_t>((value + (((value >> 8) * 1027) >> 10)) >> kBits);
}

}  // namespace

void turn_hue(Pixels pixels, std::int32_t turn) {
  // For each sextant the indices of red, green and blue in {M, m, M - (M - m) f, m + (M - m) f}.
  constexpr std::array<std::array<std::uint8_t, 3>, 6> kPlaces = {
      {{0, 3, 1}, {2, 0, 1}, {1, 0, 3}, {1, 2, 0}, {3, 1, 0}, {0, 1, 2}}};
  std::uint8_t* at = pixels.data;
  for (std::ptrdiff_t i = 0, count = pixels.count(); i < count; ++i, at += 3) {
    const std::int32_t r = at[0], g = at[1], b = at[2];
    const std::int32_t most = std::max({r, g, b}), least = std::min({r, g, b}), range = most - least;
    if (range == 0) {
      continue;
    }
    std::int32_t hue = hue_of(r, g, b, most, range) + turn;
    hue += hue < 0 ? kCircle : hue >= kCircle ? -kCircle : 0;
    const std::int32_t part = range * (hue & (kSextant - 1));
    const std::array<std::uint8_t, 4> values = {static_cast<std::uint8_t>(most), static_cast<std::uint8_t>(least),
                                                to_byte((most << kBits) - part), to_byte((least << kBits) + part)};
    const auto& places = kPlaces[static_cast<std::size_t>(hue >> kBits)];
    at[0] = values[places[0]];
    at[1] = values[places[1]];
    at[2] = values[places[2]];
  }
}

}  // namespace stoker::augment
