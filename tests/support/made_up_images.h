// SPDX-License-Identifier: Apache-2.0
// Computed images that a device may hold, with windows that extend beyond every edge. For tests of the device room.
#pragma once

#include <algorithm>

#include "stoker/augment/resident_images.h"
#include "stoker/base/counter_rng.h"
#include "stoker/base/error.h"

namespace stoker::testing {

class MadeUpImages final : public augment::ResidentImages {
 public:
  MadeUpImages(augment::ImageShape shape, std::int64_t batch) : shape_(shape), batch_(batch) {}

  [[nodiscard]] augment::ImageShape shape() const override { return shape_; }
  [[nodiscard]] std::int64_t steps_per_epoch() const override { return (shape_.images + batch_ - 1) / batch_; }
  void add_rows(std::int64_t epoch, std::int64_t step, augment::WindowRows& rows) const override {
    for (std::int64_t i = step * batch_; i < std::min((step + 1) * batch_, shape_.images); ++i) {
      CounterRng random(7, static_cast<std::uint32_t>(epoch), static_cast<std::uint64_t>(i), RandomOp::kOwn);
      const auto shift = [&](int side) {
        return static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(2 * side + 3))) - side - 1;
      };
      const auto image = static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(shape_.images)));
      const std::int32_t left = shift(shape_.width), top = shift(shape_.height);
      rows.windows.push_back({image, left, top, static_cast<std::int32_t>(random.below(2))});
      rows.indices.push_back(image);
      rows.targets.push_back(image % 10);
    }
  }
  void read(std::int64_t first, std::span<std::uint8_t> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t place = static_cast<std::uint64_t>(first * shape_.image_bytes()) + i;
      out[i] = static_cast<std::uint8_t>(1 + (place * 2654435761U >> 7) % 255);  // never black
    }
  }

 private:
  augment::ImageShape shape_;
  std::int64_t batch_;
};

}  // namespace stoker::testing
