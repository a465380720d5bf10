// SPDX-License-Identifier: Apache-2.0
#include "stoker/augment/image_policy.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "stoker/augment/pixel_kernels.h"
#include "stoker/base/error.h"

namespace stoker::augment {
namespace {

constexpr int kMaxSide = 16384;   // of an output; limits the memory of a batch row
constexpr double kLongest = 1e9;  // of a scaled image, of which only a window is computed; prevents int overflow
constexpr int kTries = 10;        // torchvision's RandomResizedCrop.get_params

// Python's round(): halves go to the even neighbour.
int round_even(double value) { return static_cast<int>(std::nearbyint(value)); }

void whole(ImageDraw& drawn, int width, int height) {
  drawn.width = width;
  drawn.height = height;
}

// torchvision.transforms: Resize(resize) scales the short side and truncates the long side; CenterCrop rounds.
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

// The drawn rectangle in a source decoded at 1 / shrink of its size: the pixels that it touches, and its position in
// them.
struct DrawnPart {
  Region pixels;
  Box box;
};

DrawnPart part_of(const ImageDraw& drawn) {
  const int shrink = drawn.shrink;
  const int right = drawn.left + drawn.width, bottom = drawn.top + drawn.height;
  const int left = drawn.left / shrink, top = drawn.top / shrink;
  const auto within = [&](int place, int begin) { return static_cast<double>(place) / shrink - begin; };
  return {{left, top, (right + shrink - 1) / shrink - left, (bottom + shrink - 1) / shrink - top},
          {within(drawn.left, left), within(drawn.top, top), within(right, left), within(bottom, top)}};
}

// Whether the rectangle is copied without scaling.
bool same_size(const ImageDraw& drawn) {
  return drawn.shrink == 1 && drawn.width == drawn.scaled_width && drawn.height == drawn.scaled_height;
}

// For an axis of `size` source pixels with from ... to scaled to `scaled`: the source pixels for outputs begin ... end
// - 1 with a filter of that radius, plus one on each side for rounding.
std::pair<int, int> source_span(int size, double from, double to, int scaled, int begin, int end, double reach) {
  const double scale = (to - from) / scaled, support = reach * std::max(scale, 1.0);
  const double low = from + (begin + 0.5) * scale - support - 1, high = from + (end - 0.5) * scale + support + 1;
  return {std::max(static_cast<int>(low), 0), static_cast<int>(std::min(std::ceil(high), static_cast<double>(size)))};
}

// The part of the scaled image that the output covers.
Region window_of(const ImagePolicy& policy, const ImageDraw& drawn) {
  const int left = std::max(drawn.offset_x, 0), right = std::min(drawn.offset_x + policy.out_width, drawn.scaled_width);
  const int top = std::max(drawn.offset_y, 0),
            bottom = std::min(drawn.offset_y + policy.out_height, drawn.scaled_height);
  return right > left && bottom > top ? Region{left, top, right - left, bottom - top} : Region{};
}

}  // namespace

void check(const ImagePolicy& policy) {
  check(std::span<const Operation>(policy.operations));
  const auto side = [](const char* name, int value, int low) {
    if (value < low || value > kMaxSide) {
      fail<ConfigError>("augment.policy", "{} must be {} to {}, got {}", name, low, kMaxSide, value);
    }
  };
  side("out_width", policy.out_width, 1);
  side("out_height", policy.out_height, 1);
  if (policy.crop == Crop::kResizeCentre) {
    side("resize", policy.resize, std::max(policy.out_width, policy.out_height));
  }
  if (policy.crop == Crop::kPad) {
    const int most = std::min(policy.out_width, policy.out_height) - 1;  // a part of the image stays visible
    if (policy.pad < 0 || policy.pad > most) {
      fail<ConfigError>("augment.policy", "pad must be 0 to {} for {}x{} pixels, got {}", most, policy.out_width,
                        policy.out_height, policy.pad);
    }
  }
  if (policy.crop == Crop::kRandomResized) {
    if (!(policy.min_scale > 0 && policy.min_scale <= policy.max_scale && policy.max_scale <= 1)) {
      fail<ConfigError>("augment.policy", "scale must be above 0 and at most 1, got {} to {}", policy.min_scale,
                        policy.max_scale);
    }
    if (!(policy.min_ratio > 0 && policy.min_ratio <= policy.max_ratio && policy.max_ratio <= 1000)) {
      fail<ConfigError>("augment.policy", "ratio must be above 0 and at most 1000, got {} to {}", policy.min_ratio,
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
  if (!policy.operations.empty()) {
    drawn.operations = draw(policy.operations, policy.out_width, policy.out_height, key);
  }
  return drawn;
}

int largest_shrink(const ImagePolicy& policy, const ImageDraw& drawn, int most) {
  int shrink = 1;
  const auto leaves_enough = [&](std::int64_t by) {
    return drawn.width >= by * drawn.scaled_width && drawn.height >= by * drawn.scaled_height;
  };
  while (policy.shrink && shrink * 2 <= most && leaves_enough(shrink * 2)) {
    shrink *= 2;
  }
  return shrink;
}

Region needed(const ImagePolicy& policy, const ImageDraw& drawn) {
  const Region window = window_of(policy, drawn);
  if (window.width == 0) {
    return {};
  }
  if (same_size(drawn)) {
    return {drawn.left + window.left, drawn.top + window.top, window.width, window.height};
  }
  const double reach = reach_of(policy.interpolation);
  const DrawnPart part = part_of(drawn);
  const auto [left, right] = source_span(part.pixels.width, part.box.left, part.box.right, drawn.scaled_width,
                                         window.left, window.left + window.width, reach);
  const auto [top, bottom] = source_span(part.pixels.height, part.box.top, part.box.bottom, drawn.scaled_height,
                                         window.top, window.top + window.height, reach);
  return {part.pixels.left + left, part.pixels.top + top, right - left, bottom - top};
}

void crop(const ImagePolicy& policy, const ImageDraw& drawn, ImageView source, std::span<std::uint8_t> out,
          ResizeScratch& scratch) {
  const std::ptrdiff_t bytes = static_cast<std::ptrdiff_t>(policy.out_width) * policy.out_height * source.channels;
  if (static_cast<std::ptrdiff_t>(out.size()) != bytes) {
    fail<ConfigError>("augment.policy", "a row has {} bytes, but {}x{}x{} needs {}", out.size(), policy.out_width,
                      policy.out_height, source.channels, bytes);
  }
  const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(policy.out_width) * source.channels;
  const Region window = window_of(policy, drawn);
  if (window.width == 0) {
    std::ranges::fill(out, std::uint8_t{0});
    return;
  }
  const int left = window.left - drawn.offset_x, right = policy.out_width - left - window.width;
  const int above = window.top - drawn.offset_y;
  const std::ptrdiff_t before = static_cast<std::ptrdiff_t>(drawn.flipped ? right : left) * source.channels;
  if (same_size(drawn)) {
    const ImageView wanted = source.part(drawn.left + window.left, drawn.top + window.top, window.width, window.height);
    const PixelKernels& kernels = scratch.kernels != nullptr ? *scratch.kernels : fastest_kernels();
    kernels.place_rows(
        wanted, drawn.flipped,
        {.pixels = out.data(), .stride = stride, .rows = policy.out_height, .above = above, .before = before});
    return;
  }
  if (window.width < policy.out_width || window.height < policy.out_height) {
    std::ranges::fill(out, std::uint8_t{0});
  }
  const auto [pixels, box] = part_of(drawn);
  const ImageView part = source.part(pixels.left, pixels.top, pixels.width, pixels.height);
  resize(part, box, drawn.scaled_width, drawn.scaled_height, window, drawn.flipped,
         out.data() + above * stride + before, stride, scratch, policy.interpolation);
}

void execute(const ImagePolicy& policy, const ImageDraw& drawn, ImageView source, std::span<std::uint8_t> out,
             ResizeScratch& scratch) {
  crop(policy, drawn, source, out, scratch);
  if (drawn.operations.count > 0) {
    PixelScratch pixels;
    execute(drawn.operations, {out.data(), policy.out_width, policy.out_height, source.channels}, pixels);
  }
}

}  // namespace stoker::augment
