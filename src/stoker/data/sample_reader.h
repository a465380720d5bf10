// SPDX-License-Identifier: Apache-2.0
// One sample from its source to its row of the batch: read, decode, draw, execute. Used by ImageLoader's threads and by
// `predict`. read_row() may be called from several threads, each with a workspace of its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "stoker/augment/image_policy.h"
#include "stoker/data/image_decode.h"
#include "stoker/data/image_folder.h"

namespace stoker::data {

// Memory of one thread, kept from sample to sample.
struct SampleWorkspace {
  std::vector<std::byte> bytes;
  ImageDecoder decoder;
  augment::ResizeScratch scratch;
};

// Seconds spent per stage, summed over threads.
struct StageSeconds {
  double read = 0;
  double decode = 0;
  double augment = 0;
  std::int64_t samples = 0;
};

class SampleReader {
 public:
  // channels: 1 or 3. ConfigError if the policy cannot be carried out.
  SampleReader(std::shared_ptr<const ByteSource> source, int channels, const augment::ImagePolicy& policy);

  // Bytes of a row: out_height * out_width * channels.
  [[nodiscard]] std::int64_t row_bytes() const;
  // Fills row (row_bytes() long, HWC) with sample `index` of the source as it is in that epoch. occurrence: 0, or how
  // often it was drawn before. DataError that names the file if it cannot be had.
  void read_row(std::int64_t index, std::uint64_t seed, std::int64_t epoch, std::span<std::uint8_t> row,
                SampleWorkspace& workspace, std::uint16_t occurrence = 0) const;
  [[nodiscard]] StageSeconds seconds() const;
  // In words, for messages.
  [[nodiscard]] std::string name(std::int64_t index) const { return source_->name(index); }

 private:
  std::shared_ptr<const ByteSource> source_;
  int channels_;
  augment::ImagePolicy policy_;
  mutable std::atomic<std::int64_t> read_ns_ = 0, decode_ns_ = 0, augment_ns_ = 0, samples_ = 0;
};

// Seconds that one sample takes on one thread: the mean over k (or all, if fewer) samples spread over the split, read
// in the caller's thread, those left out that cannot be had. 0 for an empty split. DataError as read_row if none can.
[[nodiscard]] double estimate_sample_seconds(const ImageSplit& split, int channels, const augment::ImagePolicy& policy,
                                             int k = 32);

}  // namespace stoker::data
