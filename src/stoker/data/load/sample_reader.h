// SPDX-License-Identifier: Apache-2.0
// One sample from its source to its row of the batch: read, decode, draw, execute. Used by ImageLoader's threads and by
// `predict`. read_row() may be called from several threads, each with a workspace of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "stoker/augment/image_policy.h"
#include "stoker/core/load_time.h"
#include "stoker/data/decode/image_decode.h"
#include "stoker/data/folder/image_folder.h"
#include "stoker/data/folder/stage_laps.h"
#include "stoker/data/load/cpu_gate.h"
#include "stoker/data/load/known_bad.h"
#include "stoker/data/load/pixel_store.h"

namespace stoker::data {

// Memory of one thread, kept from sample to sample.
struct SampleWorkspace {
  std::vector<std::byte> bytes;
  ImageDecoder decoder;
  augment::ResizeScratch scratch;
  augment::PixelScratch pixels;
  StageLaps laps;
  CpuGate* gate = nullptr;  // passed once the bytes are there; null: all may compute at once
};

// Of the source; both may be null.
struct SampleReaderOptions {
  std::shared_ptr<PixelStore> store = {};    // of images with as many channels
  std::shared_ptr<KnownBad> known_bad = {};  // what need not be tried
  DecodeLimits limits = {};
};

class SampleReader {
 public:
  // channels: 1 or 3. ConfigError if the policy cannot be carried out.
  SampleReader(std::shared_ptr<const ByteSource> source, int channels, const augment::ImagePolicy& policy,
               SampleReaderOptions options = {});

  // Bytes of a row: out_height * out_width * channels.
  [[nodiscard]] std::int64_t row_bytes() const;
  // Fills row (row_bytes() long, HWC) with sample `index` of the source as it is in that epoch. occurrence: 0, or
  // what tells copies of it in that epoch apart. DataError that names the file if it cannot be had.
  void read_row(std::int64_t index, std::uint64_t seed, std::int64_t epoch, std::span<std::uint8_t> row,
                SampleWorkspace& workspace, std::uint32_t occurrence = 0) const;
  // A hint that read_row() will be asked for these soon, in this order.
  void prefetch(std::span<const std::int64_t> indices) const {
    constexpr std::size_t kPixels = 1, kEntry = 5;  // places ahead: memory takes about as long as a small image
    if (options_.store && indices.size() > kEntry) {
      options_.store->prefetch_pixels(indices[kPixels]);
      options_.store->prefetch_entry(indices[kEntry]);
    }
  }
  // In words, for messages.
  [[nodiscard]] std::string name(std::int64_t index) const { return source_->name(index); }

 private:
  augment::ImageView decode(std::int64_t index, const augment::DrawKey& key, std::string_view name,
                            SampleWorkspace& workspace, augment::ImageDraw& drawn) const;
  augment::ImageView decode_again(std::int64_t index, const augment::DrawKey& key, SampleWorkspace& workspace,
                                  augment::ImageDraw& drawn) const;
  void put_row(const augment::ImageDraw& drawn, augment::ImageView image, std::span<std::uint8_t> row,
               SampleWorkspace& workspace) const;

  std::shared_ptr<const ByteSource> source_;
  SampleReaderOptions options_;
  int channels_;
  augment::ImagePolicy policy_;
};

// The mean over k (or all, if fewer) samples spread over the split, read in the caller's thread, those left out that
// cannot be had. None for an empty split. DataError as read_row if none can.
[[nodiscard]] core::LoadTime estimate_load_time(const ImageSplit& split, int channels,
                                                const augment::ImagePolicy& policy, int k = 32);

}  // namespace stoker::data
