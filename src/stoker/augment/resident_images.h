// SPDX-License-Identifier: Apache-2.0
// A training split whose images all fit on a device, and the rows of its batches there. Made by data, used by
// resident::ResidentSource, which is independent of files, orders and policies. Thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stoker/augment/image_window.h"

namespace stoker::augment {

// The rows of one or more consecutive batches.
struct WindowRows {
  std::vector<std::int64_t> indices;  // of the samples in their source
  std::vector<std::int64_t> targets;
  std::vector<WindowDraw> windows;
};

class ResidentImages {
 public:
  ResidentImages() = default;
  ResidentImages(const ResidentImages&) = delete;
  ResidentImages& operator=(const ResidentImages&) = delete;
  virtual ~ResidentImages() = default;

  [[nodiscard]] virtual ImageShape shape() const = 0;
  // The same for every epoch.
  [[nodiscard]] virtual std::int64_t steps_per_epoch() const = 0;
  // Adds the rows of this rank's batch at (epoch, step), as the loader would hand them out.
  virtual void add_rows(std::int64_t epoch, std::int64_t step, WindowRows& rows) const = 0;
  // Fills out with as many whole images as fit, starting with number `first`. DataError for an unreadable image: then
  // the split must stay with its loader, which can replace it.
  virtual void read(std::int64_t first, std::span<std::uint8_t> out) const = 0;
};

}  // namespace stoker::augment
