// SPDX-License-Identifier: Apache-2.0
// The loader of watch_cases.cpp and threads_cases.cpp: small crops of a folder's images, with some work for every
// stage.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>

#include "stoker/data/load/image_loader.h"

namespace stoker::bench {

inline constexpr int kSmallSide = 64;
inline constexpr std::int64_t kSmallBatch = 32;

inline void sleep_ms(double ms) { std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms)); }

[[nodiscard]] inline data::ImageLoaderOptions small_images(data::ImageSplit split, int threads) {
  data::ImageLoaderOptions options;
  options.split = std::move(split);
  options.policy = {
      .crop = augment::Crop::kRandomResized, .out_width = kSmallSide, .out_height = kSmallSide, .flip = true};
  options.policy.operations = {augment::Grey{.probability = 1}};
  options.mix = {.mixup = 0.2};
  options.batch = kSmallBatch;
  options.threads = threads;
  return options;
}

}  // namespace stoker::bench
