// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <vector>

#include "stoker/augment/pixel_kernels.h"
#include "stoker/base/clock.h"

namespace stoker::augment {
namespace {

// Seconds that one family takes for a small resize by 10 : 7.
double seconds_of(const PixelKernels& kernels, const Image& source, ResizeScratch& scratch,
                  std::vector<std::uint8_t>& out) {
  scratch.kernels = &kernels;
  const int width = source.width * 7 / 10, height = source.height * 7 / 10, stride = width * source.channels;
  out.resize(static_cast<std::size_t>(stride) * static_cast<std::size_t>(height));
  const Stopwatch watch;
  resize(source.view(), {0, 0, static_cast<double>(source.width), static_cast<double>(source.height)}, width, height,
         {0, 0, width, height}, false, out.data(), stride, scratch);
  return watch.seconds();
}

const PixelKernels& measured() {
  constexpr int kTurns = 6;  // the best one counts, since other work on the machine only adds time
  const auto families = runnable_kernels().subspan(1);  // plain loops are several times slower
  Image source;
  source.reshape(160, 40, 3);
  ResizeScratch scratch;
  std::vector<std::uint8_t> out;
  std::vector<double> best(families.size(), std::numeric_limits<double>::infinity());
  for (int turn = 0; turn < kTurns; ++turn) {
    for (std::size_t i = 0; i < families.size(); ++i) {
      best[i] = std::min(best[i], seconds_of(*families[i], source, scratch, out));
    }
  }
  return *families[static_cast<std::size_t>(std::ranges::min_element(best) - best.begin())];
}

}  // namespace

std::span<const PixelKernels* const> runnable_kernels() {
  static const std::vector<const PixelKernels*> families = [] {
    std::vector<const PixelKernels*> found{&plain_kernels(), &vector_kernels()};
    if (quad_kernels() != nullptr) {
      found.push_back(quad_kernels());
    }
    return found;
  }();
  return families;
}

const PixelKernels& fastest_kernels() {
  static const PixelKernels& fastest = runnable_kernels().size() > 2 ? measured() : vector_kernels();
  return fastest;
}

}  // namespace stoker::augment
