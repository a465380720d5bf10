// SPDX-License-Identifier: Apache-2.0
// What the splits of one source of images share: decoded images, and which ones need not be tried. Each is made
// when it is first asked for. Used by the task of image classification. One thread at a time.
#pragma once

#include <map>
#include <memory>

#include "stoker/core/task_setting.h"
#include "stoker/data/folder/byte_source.h"
#include "stoker/data/load/known_bad.h"
#include "stoker/data/load/pixel_store.h"

namespace stoker::tasks {

class ImageCaches {
 public:
  using Source = std::shared_ptr<const data::ByteSource>;
  // Of the setting `cache`; null where it is 0 or not there.
  [[nodiscard]] std::shared_ptr<data::PixelStore> store_of(const Source& source, const core::TaskValues& own);
  // Of the settings `retry_bad` and `strict`. channels: that images are decoded to.
  [[nodiscard]] std::shared_ptr<data::KnownBad> known_bad_of(const Source& source, const core::TaskValues& own,
                                                             int channels);

 private:
  std::map<const data::ByteSource*, std::shared_ptr<data::PixelStore>> stores_;
  std::map<const data::ByteSource*, std::shared_ptr<data::KnownBad>> known_bad_;
};

}  // namespace stoker::tasks
