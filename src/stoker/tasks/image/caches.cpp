// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/image/caches.h"

#include "stoker/data/folder/cache_folder.h"

namespace stoker::tasks {

std::shared_ptr<data::PixelStore> ImageCaches::store_of(const Source& source, const ImageOptions& wanted) {
  constexpr std::int64_t kMegabyte = 1'000'000;
  const std::int64_t most = wanted.cache * kMegabyte;
  if (most == 0) {
    return nullptr;
  }
  std::shared_ptr<data::PixelStore>& store = stores_[source.get()];
  if (!store) {
    store = std::make_shared<data::PixelStore>(source->size(), most);
  }
  return store;
}

std::shared_ptr<data::KnownBad> ImageCaches::known_bad_of(const Source& source, const ImageOptions& wanted,
                                                          int channels) {
  std::shared_ptr<data::KnownBad>& known = known_bad_[source.get()];
  if (!known) {
    data::KnownBadOptions options;
    options.cache = data::cache_folder();
    options.channels = channels;
    options.strict = wanted.strict;
    options.retry = wanted.retry_bad;
    known = std::make_shared<data::KnownBad>(source, std::move(options));
  }
  return known;
}

std::shared_ptr<data::RowIndex> ImageCaches::rows_of(const Source& source, const ImageOptions& wanted,
                                                     augment::Crop crop) {
  if (wanted.cache > 0 || crop != augment::Crop::kRandomResized) {
    return nullptr;
  }
  std::shared_ptr<data::RowIndex>& rows = rows_[source.get()];
  if (!rows) {
    rows = std::make_shared<data::RowIndex>(*source, data::RowIndexOptions{.cache = data::cache_folder()});
  }
  return rows;
}

}  // namespace stoker::tasks
