// SPDX-License-Identifier: Apache-2.0
// The batches of an ImageLoader as windows into images on a device: the same order, draws and labels. Passed to
// resident::ResidentSource by job. Thread-safe.
#pragma once

#include <string>

#include "stoker/augment/resident_images.h"
#include "stoker/data/load/image_loader.h"

namespace stoker::data {

// The reason why such a loader's batches are not windows into whole images; empty if they are. Images may have any
// size: they are stored scaled to the size of a row, which is the first operation of such a policy.
[[nodiscard]] std::string why_not_resident(const augment::ImagePolicy& policy, const augment::Mix& mix);

class ResidentSplit final : public augment::ResidentImages {
 public:
  // The options of the loader; threads, depth, pinned and start are ignored. ConfigError as ImageLoader, and with the
  // reason of why_not_resident().
  explicit ResidentSplit(ImageLoaderOptions options);

  [[nodiscard]] augment::ImageShape shape() const override;
  [[nodiscard]] std::int64_t steps_per_epoch() const override { return options_.order->steps_per_epoch(); }
  void add_rows(std::int64_t epoch, std::int64_t step, augment::WindowRows& rows) const override;
  // Takes images from options.store; reads and decodes the rest in the caller's thread.
  void read(std::int64_t first, std::span<std::uint8_t> out) const override;

 private:
  ImageLoaderOptions options_;  // with an order
  SampleReader reader_;         // reads whole images
};

}  // namespace stoker::data
