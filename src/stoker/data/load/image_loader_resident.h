// SPDX-License-Identifier: Apache-2.0
// The batches of an ImageLoader as windows onto images that lie on a device: the same order, the same draws, the same
// labels. Handed to resident::ResidentSource by job. Thread-safe.
#pragma once

#include <string>

#include "stoker/augment/resident_images.h"
#include "stoker/data/load/image_loader.h"

namespace stoker::data {

// Why such a loader's batches are not just windows onto whole images; empty if they are. Images of any size are:
// they lie there scaled to the size of a row, which is how such a policy begins.
[[nodiscard]] std::string why_not_resident(const augment::ImagePolicy& policy, const augment::Mix& mix);

class ResidentSplit final : public augment::ResidentImages {
 public:
  // The options of the loader whose batches these are; threads, depth, pinned and start mean nothing here. ConfigError
  // as ImageLoader, and with what why_not_resident() says.
  explicit ResidentSplit(ImageLoaderOptions options);

  [[nodiscard]] augment::ImageShape shape() const override;
  [[nodiscard]] std::int64_t steps_per_epoch() const override { return options_.order->steps_per_epoch(); }
  void add_rows(std::int64_t epoch, std::int64_t step, augment::WindowRows& rows) const override;
  // From options.store what is there; the rest is read and decoded in the caller's thread.
  void read(std::int64_t first, std::span<std::uint8_t> out) const override;

 private:
  ImageLoaderOptions options_;  // with an order
  SampleReader reader_;         // of whole images
};

}  // namespace stoker::data
