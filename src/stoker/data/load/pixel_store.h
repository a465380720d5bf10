// SPDX-License-Identifier: Apache-2.0
// Keeps decoded images of one source in memory: an image is decoded only once, as long as there is room. Filled by the
// loader's threads during the first epoch, without extra waiting; splits of one source share it. Thread-safe.
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
  // samples: in the source. most_bytes: limit for pixels; images beyond it are decoded each time. ConfigError for
  // negative numbers.
  PixelStore(std::int64_t samples, std::int64_t most_bytes);

  // The upright image, valid while the store exists; pixels is null if it is not stored.
  [[nodiscard]] augment::ImageView find(std::int64_t index) const;
  // Prefetch hints, since memory access is random: find() will be called for this image; its pixels will be read.
  void prefetch_entry(std::int64_t index) const { __builtin_prefetch(&entries_[static_cast<std::size_t>(index)]); }
  void prefetch_pixels(std::int64_t index) const;
  // Copies the image if there is room and it is not stored yet.
  void put(std::int64_t index, augment::ImageView image);
  // Bytes of stored pixels.
  [[nodiscard]] std::int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::atomic<const std::uint8_t*> pixels = nullptr;  // set last; the other members are valid once it is not null
    std::int32_t width = 0;
    std::int16_t height = 0;
    std::int8_t channels = 0;
    bool taken = false;  // a thread has stored it, or is storing it
  };
  std::uint8_t* room_for(std::size_t bytes);

  std::vector<Entry> entries_;
  std::int64_t most_bytes_;
  std::atomic<std::int64_t> bytes_ = 0;
  std::mutex mutex_;  // guards the members below and `taken`; not held while pixels are copied
  struct Free {
    void operator()(std::uint8_t* block) const { std::free(block); }
  };
  std::vector<std::unique_ptr<std::uint8_t, Free>> blocks_;
  std::uint8_t* newest_ = nullptr;  // free space of the newest block
  std::size_t left_ = 0;            // bytes of free space
};

}  // namespace stoker::data
