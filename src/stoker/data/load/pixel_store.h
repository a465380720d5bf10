// SPDX-License-Identifier: Apache-2.0
// Decoded images of one source in memory: what was decoded once is never decoded again, as long as there is room.
// Filled by the loader's threads as they meet the images, so that nothing waits for it; splits of one source share
// it. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include "stoker/augment/image.h"

namespace stoker::data {

class PixelStore {
 public:
  // samples: of the source. most_bytes: of pixels; images that find no room are decoded each time. ConfigError for
  // numbers below 0.
  PixelStore(std::int64_t samples, std::int64_t most_bytes);

  // The upright image, good for the store's life; pixels is null if it is not there.
  [[nodiscard]] augment::ImageView find(std::int64_t index) const;
  // Hints, as both lie anywhere in memory: that find() will be asked for this one, and, a few images later, that its
  // pixels will be read.
  void prefetch_entry(std::int64_t index) const { __builtin_prefetch(&entries_[static_cast<std::size_t>(index)]); }
  void prefetch_pixels(std::int64_t index) const;
  // Copies the image, if there is room and it is not there yet.
  void put(std::int64_t index, augment::ImageView image);
  // Bytes of pixels held.
  [[nodiscard]] std::int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::atomic<const std::uint8_t*> pixels = nullptr;  // set last; the rest is good once it is not null
    std::int32_t width = 0;
    std::int16_t height = 0;
    std::int8_t channels = 0;
    bool taken = false;  // some thread has put it, or is at it
  };
  std::uint8_t* room_for(std::size_t bytes);

  std::vector<Entry> entries_;
  std::int64_t most_bytes_;
  std::atomic<std::int64_t> bytes_ = 0;
  std::mutex mutex_;  // guards what follows, and `taken`; not held while pixels are copied
  struct Free {
    void operator()(std::uint8_t* block) const { std::free(block); }
  };
  std::vector<std::unique_ptr<std::uint8_t, Free>> blocks_;
  std::uint8_t* newest_ = nullptr;  // free room of the newest block
  std::size_t left_ = 0;            // bytes of it
};

}  // namespace stoker::data
