// SPDX-License-Identifier: Apache-2.0
#include "stoker/augment/image_policy.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "stoker/base/error.h"

namespace stoker::augment {
namespace {

constexpr int kMaxSide = 16384;   // of an output; bounds the memory of a batch row
constexpr double kLongest = 1e9;  // of a scaled picture, of which only a window is computed: keeps int from overflowing
constexpr int kTries = 10;        // torchvision's RandomResizedCrop.get_params

// Python's round(): halves go to the even neighbour.
int round_even(double value) { return static_cast<int>(std::nearbyint(value)); }

void whole(ImageDraw& drawn, int width, int height) {
  drawn.width = width;
  drawn.height = height;
}

// torchvision.transforms: Resize(resize) scales the short side and cuts the long one's fraction off; CenterCrop rounds.
void resize_centre(const ImagePolicy& policy, int width, int height, ImageDraw& drawn) {
  whole(drawn, width, height);
  const auto longer = [&](int side, int shorter) {
    return static_cast<int>(std::min(static_cast<double>(policy.resize) * side / shorter, kLongest));
  };
  drawn.scaled_width = width <= height ? policy.resize : longer(width, height);
  drawn.scaled_height = width <= height ? longer(height, width) : policy.resize;
  drawn.offset_x = round_even((drawn.scaled_width - policy.out_width) / 2.0);
  drawn.offset_y = round_even((drawn.scaled_height - policy.out_height) / 2.0);
}

// torchvision's RandomResizedCrop.get_params, with its fallback to a centred rectangle of the nearest allowed ratio.
void random_rectangle(const ImagePolicy& policy, int width, int height, CounterRng random, ImageDraw& drawn) {
  const double area = static_cast<double>(width) * height;
  const double low = std::log(policy.min_ratio), high = std::log(policy.max_ratio);
  for (int i = 0; i < kTries; ++i) {
    const double wanted = area * random.uniform(policy.min_scale, policy.max_scale);
    const double ratio = std::exp(random.uniform(low, high));
    const double w = std::nearbyint(std::sqrt(wanted * ratio)), h = std::nearbyint(std::sqrt(wanted / ratio));
    if (w >= 1 && w <= width && h >= 1 && h <= height) {
      whole(drawn, static_cast<int>(w), static_cast<int>(h));
      drawn.top = static_cast<int>(random.below(static_cast<std::uint32_t>(height - drawn.height + 1)));
      drawn.left = static_cast<int>(random.below(static_cast<std::uint32_t>(width - drawn.width + 1)));
      return;
    }
  }
  const double ratio = static_cast<double>(width) / height;
  whole(drawn, width, height);
  if (ratio < policy.min_ratio) {
    drawn.height = std::clamp(round_even(width / policy.min_ratio), 1, height);
  } else if (ratio > policy.max_ratio) {
    drawn.width = std::clamp(round_even(height * policy.max_ratio), 1, width);
  }
  drawn.top = (height - drawn.height) / 2;
  drawn.left = (width - drawn.width) / 2;
}

bool flip(const ImagePolicy& policy, DrawKey key) {
  if (!policy.flip) {
    return false;
  }
  const bool again = policy.alternate && (key.epoch + key.occurrence) % 2 == 1;
  if (policy.alternate) {
    key.epoch = 0, key.occurrence = 0;
  }
  return (key.random(RandomOp::kFlip).uniform() < 0.5) != again;
}

// Columns in reverse order, in place.
void mirror_row(std::uint8_t* row, int width, int channels) {
  for (int a = 0, b = width - 1; a < b; ++a, --b) {
    std::swap_ranges(row + a * channels, row + (a + 1) * channels, row + b * channels);
  }
}

}  // namespace

void check(const ImagePolicy& policy) {
  check(std::span<const Operation>(policy.operations));
  const auto side = [](const char* name, int value, int low) {
    if (value < low || value > kMaxSide) {
      fail<ConfigError>("augment.policy", "{} must be in {} ... {}, got {}", name, low, kMaxSide, value);
    }
  };
  side("out_width", policy.out_width, 1);
  side("out_height", policy.out_height, 1);
  if (policy.crop == Crop::kResizeCentre) {
    side("resize", policy.resize, std::max(policy.out_width, policy.out_height));
  }
  if (policy.crop == Crop::kPad) {
    side("pad", policy.pad, 0);
  }
  if (policy.crop == Crop::kRandomResized) {
    if (!(policy.min_scale > 0 && policy.min_scale <= policy.max_scale && policy.max_scale <= 1)) {
      fail<ConfigError>("augment.policy", "scale must be within (0, 1], got {} to {}", policy.min_scale,
                        policy.max_scale);
    }
    if (!(policy.min_ratio > 0 && policy.min_ratio <= policy.max_ratio && policy.max_ratio <= 1000)) {
      fail<ConfigError>("augment.policy", "ratio must be within (0, 1000], got {} to {}", policy.min_ratio,
                        policy.max_ratio);
    }
  }
}

ImageDraw draw(const ImagePolicy& policy, int width, int height, const DrawKey& key) {
  ImageDraw drawn;
  drawn.scaled_width = policy.out_width;
  drawn.scaled_height = policy.out_height;
  switch (policy.crop) {
    case Crop::kNone: whole(drawn, width, height); break;
    case Crop::kResizeCentre: resize_centre(policy, width, height, drawn); break;
    case Crop::kRandomResized: random_rectangle(policy, width, height, key.random(RandomOp::kCrop), drawn); break;
    case Crop::kPad: {
      whole(drawn, width, height);
      CounterRng place = key.random(RandomOp::kCrop);
      const auto places = static_cast<std::uint32_t>(2 * policy.pad + 1);
      drawn.offset_y = static_cast<int>(place.below(places)) - policy.pad;
      drawn.offset_x = static_cast<int>(place.below(places)) - policy.pad;
      break;
    }
  }
  drawn.flipped = flip(policy, key);
  drawn.operations = draw(policy.operations, policy.out_width, policy.out_height, key);
  return drawn;
}

void execute(const ImagePolicy& policy, const ImageDraw& drawn, ImageView source, std::span<std::uint8_t> out,
             ResizeScratch& scratch) {
  const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(policy.out_width) * source.channels;
  if (static_cast<std::ptrdiff_t>(out.size()) != stride * policy.out_height) {
    fail<ConfigError>("augment.policy", "a row has {} bytes, {}x{}x{} need {}", out.size(), policy.out_width,
                      policy.out_height, source.channels, stride * policy.out_height);
  }
  // The part of the output that the scaled picture covers; the rest is black.
  const int left = std::max(drawn.offset_x, 0), right = std::min(drawn.offset_x + policy.out_width, drawn.scaled_width);
  const int top = std::max(drawn.offset_y, 0),
            bottom = std::min(drawn.offset_y + policy.out_height, drawn.scaled_height);
  const bool covered = right - left == policy.out_width && bottom - top == policy.out_height;
  if (!covered) {
    std::memset(out.data(), 0, out.size());
  }
  if (right > left && bottom > top) {
    const ImageView part = source.part(drawn.left, drawn.top, drawn.width, drawn.height);
    std::uint8_t* to = out.data() + (top - drawn.offset_y) * stride +
                       static_cast<std::ptrdiff_t>(left - drawn.offset_x) * source.channels;
    if (drawn.scaled_width == part.width && drawn.scaled_height == part.height) {
      const ImageView wanted = part.part(left, top, right - left, bottom - top);
      for (int y = 0; y < wanted.height; ++y) {
        std::memcpy(to + y * stride, wanted.row(y), static_cast<std::size_t>(wanted.width * source.channels));
      }
    } else {
      resize(part, {0, 0, static_cast<double>(part.width), static_cast<double>(part.height)}, drawn.scaled_width,
             drawn.scaled_height, {left, top, right - left, bottom - top}, to, stride, scratch);
    }
  }
  if (drawn.flipped) {
    for (int y = 0; y < policy.out_height; ++y) {
      mirror_row(out.data() + y * stride, policy.out_width, source.channels);
    }
  }
  if (drawn.operations.count > 0) {
    thread_local PixelScratch pixels;  // grows to a few rows, or one picture, and stays with its thread
    execute(drawn.operations, {out.data(), policy.out_width, policy.out_height, source.channels}, pixels);
  }
}

}  // namespace stoker::augment
