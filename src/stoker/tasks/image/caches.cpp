// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/image/caches.h"

#include "stoker/data/folder/cache_folder.h"
#include "stoker/tasks/image/reading.h"
#include "stoker/tasks/task_values.h"

namespace stoker::tasks {

std::shared_ptr<data::PixelStore> ImageCaches::store_of(const Source& source, const core::TaskValues& own) {
  constexpr std::int64_t kMegabyte = 1'000'000;
  const std::int64_t most = own.contains("cache") ? whole_value(own, "cache") * kMegabyte : 0;
  if (most == 0) {
    return nullptr;
  }
  std::shared_ptr<data::PixelStore>& store = stores_[source.get()];
  if (!store) {
    store = std::make_shared<data::PixelStore>(source->size(), most);
  }
  return store;
}

std::shared_ptr<data::KnownBad> ImageCaches::known_bad_of(const Source& source, const core::TaskValues& own,
                                                          int channels) {
  std::shared_ptr<data::KnownBad>& known = known_bad_[source.get()];
  if (!known) {
    data::KnownBadOptions options;
    options.cache = data::cache_folder();
    options.channels = channels;
    options.strict = limits_of(own).strict;
    options.retry = own.contains("retry_bad") && flag_value(own, "retry_bad");
    known = std::make_shared<data::KnownBad>(source, std::move(options));
  }
  return known;
}

}  // namespace stoker::tasks
