// SPDX-License-Identifier: Apache-2.0
// Brings one sample from its source into its row of the batch: read, decode, draw, execute. Used by ImageLoader's
// threads and by `predict`. read_row() may be called from several threads, each with its own workspace.
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
#include "stoker/data/load/row_index.h"

namespace stoker::data {

// Memory of one thread, reused for every sample.
struct SampleWorkspace {
  std::vector<std::byte> bytes;
  ImageDecoder decoder;
  JpegRows rows;
  augment::ResizeScratch scratch;
  augment::PixelScratch pixels;
  StageLaps laps;
  CpuGate* gate = nullptr;  // limits computing threads after the bytes are read; null: no limit
};

// For the source; all may be null.
struct SampleReaderOptions {
  std::shared_ptr<PixelStore> store = {};    // for images with the same number of channels
  std::shared_ptr<KnownBad> known_bad = {};  // images that are not tried
  DecodeLimits limits = {};
  std::shared_ptr<RowIndex> rows = {};  // of JPEGs that are decoded in part; not used with a store
};

class SampleReader {
 public:
  // channels: 1 or 3. ConfigError if the policy cannot be executed.
  SampleReader(std::shared_ptr<const ByteSource> source, int channels, const augment::ImagePolicy& policy,
               SampleReaderOptions options = {});

  // Bytes of a row: out_height * out_width * channels.
  [[nodiscard]] std::int64_t row_bytes() const;
  // Fills row (row_bytes() bytes, HWC) with sample `index` of the source, augmented for that epoch. occurrence: 0, or a
  // number that distinguishes copies of the sample in that epoch. DataError with the file name if it cannot be read.
  void read_row(std::int64_t index, std::uint64_t seed, std::int64_t epoch, std::span<std::uint8_t> row,
                SampleWorkspace& workspace, std::uint32_t occurrence = 0) const;
  // A hint that read_row() will be called for these soon, in this order.
  void prefetch(std::span<const std::int64_t> indices) const {
    constexpr std::size_t kPixels = 1, kEntry = 5;  // places ahead: memory takes as long as a small image
    if (options_.store && indices.size() > kEntry) {
      options_.store->prefetch_pixels(indices[kPixels]);
      options_.store->prefetch_entry(indices[kEntry]);
    }
  }
  // Name for messages.
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

// The mean over k samples (or all, if fewer) spread over the split, read in the caller's thread. Skips unreadable
// samples. None for an empty split. DataError as read_row if all are unreadable.
[[nodiscard]] core::LoadTime estimate_load_time(const ImageSplit& split, int channels,
                                                const augment::ImagePolicy& policy, int k = 32);

}  // namespace stoker::data
