// SPDX-License-Identifier: Apache-2.0
// Shared by the splits of one source of images: decoded images, the list of unreadable ones, and the rows of JPEGs.
// Each is made on first use. Used by the image task. One thread at a time.
#pragma once

#include <map>
#include <memory>

#include "stoker/augment/image_policy.h"
#include "stoker/data/folder/byte_source.h"
#include "stoker/data/load/known_bad.h"
#include "stoker/data/load/pixel_store.h"
#include "stoker/data/load/row_index.h"
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
  // Null unless images are decoded again and again, and only in part: no decoded images are kept, and the crop is
  // random.
  [[nodiscard]] std::shared_ptr<data::RowIndex> rows_of(const Source& source, const ImageOptions& wanted,
                                                        augment::Crop crop);

 private:
  std::map<const data::ByteSource*, std::shared_ptr<data::PixelStore>> stores_;
  std::map<const data::ByteSource*, std::shared_ptr<data::KnownBad>> known_bad_;
  std::map<const data::ByteSource*, std::shared_ptr<data::RowIndex>> rows_;
};

}  // namespace stoker::tasks
