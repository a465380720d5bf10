// SPDX-License-Identifier: Apache-2.0
// What the splits of one source of images share: decoded images, and the list of unreadable ones. Each is made when it
// is first asked for. Used by the image task. One thread at a time.
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
  // By the option `cache`; null where it is 0.
  [[nodiscard]] std::shared_ptr<data::PixelStore> store_of(const Source& source, const ImageOptions& wanted);
  // By the options `retry_bad` and `strict`. channels: of decoded images.
  [[nodiscard]] std::shared_ptr<data::KnownBad> known_bad_of(const Source& source, const ImageOptions& wanted,
                                                             int channels);

 private:
  std::map<const data::ByteSource*, std::shared_ptr<data::PixelStore>> stores_;
  std::map<const data::ByteSource*, std::shared_ptr<data::KnownBad>> known_bad_;
};

}  // namespace stoker::tasks
