// SPDX-License-Identifier: Apache-2.0
// Shared by the splits of one source of images: decoded images, and the list of unreadable ones. Each is made on first
// use. Used by the image task. One thread at a time.
#pragma once

#include <map>
#include <memory>

#include "stoker/data/folder/byte_source.h"
#include "stoker/data/load/known_bad.h"
#include "stoker/data/load/pixel_store.h"
#include "stoker/tasks/image/options.h"

namespace stoker::tasks {

class ImageCaches {
 public:
  using Source = std::shared_ptr<const data::ByteSource>;
  // Set by the option `cache`; null if it is 0.
  [[nodiscard]] std::shared_ptr<data::PixelStore> store_of(const Source& source, const ImageOptions& wanted);
  // Set by the options `retry_bad` and `strict`. channels: of decoded images.
  [[nodiscard]] std::shared_ptr<data::KnownBad> known_bad_of(const Source& source, const ImageOptions& wanted,
                                                             int channels);

 private:
  std::map<const data::ByteSource*, std::shared_ptr<data::PixelStore>> stores_;
  std::map<const data::ByteSource*, std::shared_ptr<data::KnownBad>> known_bad_;
};

}  // namespace stoker::tasks
