// SPDX-License-Identifier: Apache-2.0
// The batches of an ImageLoader as windows onto pictures that lie on a device: the same order, the same draws, the same
// labels. Handed to device::ResidentSource by job. Thread-safe.
#pragma once

#include <string>

#include "stoker/augment/resident_pictures.h"
#include "stoker/data/image_loader.h"

namespace stoker::data {

// Why such a loader's batches are not just windows onto whole pictures; empty if they are. Pictures of any size are:
// they lie there scaled to the size of a row, which is how such a policy begins.
[[nodiscard]] std::string why_not_resident(const augment::ImagePolicy& policy, const augment::Mix& mix);

class ResidentImages final : public augment::ResidentPictures {
 public:
  // The options of the loader whose batches these are; threads, depth, pinned and start mean nothing here. ConfigError
  // as ImageLoader, and with what why_not_resident() says.
  explicit ResidentImages(ImageLoaderOptions options);

  [[nodiscard]] augment::PictureShape shape() const override;
  [[nodiscard]] std::int64_t steps_per_epoch() const override { return options_.order->steps_per_epoch(); }
  void add_rows(std::int64_t epoch, std::int64_t step, augment::WindowRows& rows) const override;
  // From options.store what is there; the rest is read and decoded in the caller's thread.
  void read(std::int64_t first, std::span<std::uint8_t> out) const override;

 private:
  ImageLoaderOptions options_;  // with an order
  SampleReader reader_;         // of whole pictures
};

}  // namespace stoker::data
