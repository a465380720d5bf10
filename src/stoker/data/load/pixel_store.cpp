// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/load/pixel_store.h"

#include <sys/mman.h>

#include <algorithm>
#include <limits>
#include <new>

#include "stoker/base/error.h"

namespace stoker::data {
namespace {

// Size of a block, in huge pages if available: images are read in random order, and with pages of 4 KiB each image
// would need a page table lookup. An image of CIFAR-10 has 3,072 bytes.
constexpr std::size_t kHugePage = std::size_t{2} << 20, kBlock = 4 * kHugePage;

}  // namespace

PixelStore::PixelStore(std::int64_t samples, std::int64_t most_bytes) : most_bytes_(most_bytes) {
  if (samples < 0 || most_bytes < 0) {
    fail<ConfigError>("data.pixel_store", "samples and bytes must not be negative, got {} samples and {} bytes",
                      samples, most_bytes);
  }
  entries_ = std::vector<Entry>(static_cast<std::size_t>(samples));
}

augment::ImageView PixelStore::find(std::int64_t index) const {
  const Entry& entry = entries_[static_cast<std::size_t>(index)];
  const std::uint8_t* pixels = entry.pixels.load(std::memory_order_acquire);
  if (pixels == nullptr) {
    return {};
  }
  return {.pixels = pixels,
          .width = entry.width,
          .height = entry.height,
          .channels = entry.channels,
          .stride = std::ptrdiff_t{entry.width} * entry.channels};
}

void PixelStore::prefetch_pixels(std::int64_t index) const {
  constexpr std::ptrdiff_t kLine = 64, kMost = 12 * kLine;  // bytes; the processor prefetches the rest
  const augment::ImageView image = find(index);
  const std::ptrdiff_t bytes = image.pixels == nullptr ? 0 : image.stride * image.height;
  for (std::ptrdiff_t i = 0; i < std::min(bytes, kMost); i += kLine) {
    __builtin_prefetch(image.pixels + i);
  }
}

void PixelStore::put(std::int64_t index, augment::ImageView image) {
  const std::size_t row = static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.channels);
  const std::size_t bytes = row * static_cast<std::size_t>(image.height);
  if (image.height > std::numeric_limits<std::int16_t>::max()) {
    return;  // not worth keeping
  }
  Entry& entry = entries_[static_cast<std::size_t>(index)];
  std::uint8_t* to = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (entry.taken || bytes_.load(std::memory_order_relaxed) + static_cast<std::int64_t>(bytes) > most_bytes_) {
      return;
    }
    to = room_for(bytes);
    entry.taken = true;
    bytes_.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  }
  for (int y = 0; y < image.height; ++y) {
    std::copy_n(image.row(y), row, to + static_cast<std::size_t>(y) * row);
  }
  entry.width = image.width;
  entry.height = static_cast<std::int16_t>(image.height);
  entry.channels = static_cast<std::int8_t>(image.channels);
  entry.pixels.store(to, std::memory_order_release);
}

std::uint8_t* PixelStore::room_for(std::size_t bytes) {
  if (bytes + augment::kSlack > left_) {
    const std::size_t size = (std::max(kBlock, bytes + augment::kSlack) + kHugePage - 1) / kHugePage * kHugePage;
    auto* block = static_cast<std::uint8_t*>(std::aligned_alloc(kHugePage, size));
    if (block == nullptr) {
      throw std::bad_alloc();
    }
    blocks_.emplace_back(block);
    newest_ = block;
    madvise(newest_, size, MADV_HUGEPAGE);  // a hint
    left_ = size;
  }
  std::uint8_t* room = newest_;
  newest_ += bytes;
  left_ -= bytes;
  return room;
}

}  // namespace stoker::data
