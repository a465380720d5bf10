// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/sample_reader.h"

#include <algorithm>
#include <utility>

#include "stoker/base/clock.h"
#include "stoker/base/error.h"

namespace stoker::data {
namespace {

constexpr double kNanoseconds = 1e9;

void add(std::atomic<std::int64_t>& counter, double seconds) {
  counter.fetch_add(static_cast<std::int64_t>(seconds * kNanoseconds), std::memory_order_relaxed);
}

double seconds_of(const std::atomic<std::int64_t>& counter) {
  return static_cast<double>(counter.load(std::memory_order_relaxed)) / kNanoseconds;
}

}  // namespace

SampleReader::SampleReader(std::shared_ptr<const ByteSource> source, int channels, const augment::ImagePolicy& policy)
    : source_(std::move(source)), channels_(channels), policy_(policy) {
  augment::check(policy_);
  if (channels != 1 && channels != 3) {
    fail<ConfigError>("data.loader", "pictures have 1 or 3 channels, got {}", channels);
  }
  if (!source_) {
    fail<ConfigError>("data.loader", "the split has no source");
  }
}

std::int64_t SampleReader::row_bytes() const {
  return std::int64_t{policy_.out_height} * policy_.out_width * channels_;
}

void SampleReader::read_row(std::int64_t index, std::uint64_t seed, std::int64_t epoch, std::span<std::uint8_t> row,
                            SampleWorkspace& workspace, std::uint16_t occurrence) const {
  Stopwatch watch;
  source_->read(index, workspace.bytes);
  add(read_ns_, watch.restart());
  const augment::DrawKey key{seed, static_cast<std::uint32_t>(epoch), static_cast<std::uint64_t>(index), occurrence};
  augment::ImageDraw drawn;
  const auto decode = [&](std::string_view name) {
    const ImageDecoder::Size size = workspace.decoder.open(workspace.bytes, channels_, {}, name);
    drawn = augment::draw(policy_, size.width, size.height, key);
    return workspace.decoder.decode(augment::needed(policy_, drawn), name);
  };
  augment::ImageView picture;
  try {
    picture = decode({});
  } catch (const DataError&) {  // once more, with the name: making it for every good sample would cost time
    picture = decode(source_->name(index));
  }
  add(decode_ns_, watch.restart());
  augment::execute(policy_, drawn, picture, row, workspace.scratch);
  add(augment_ns_, watch.restart());
  samples_.fetch_add(1, std::memory_order_relaxed);
}

StageSeconds SampleReader::seconds() const {
  return {seconds_of(read_ns_), seconds_of(decode_ns_), seconds_of(augment_ns_),
          samples_.load(std::memory_order_relaxed)};
}

double estimate_sample_seconds(const ImageSplit& split, int channels, const augment::ImagePolicy& policy, int k) {
  const std::int64_t count = std::min<std::int64_t>(k, split.size());
  if (count < 1) {
    return 0;
  }
  const SampleReader reader(split.source, channels, policy);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(reader.row_bytes()));
  SampleWorkspace workspace;
  const Stopwatch watch;
  std::int64_t had = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    try {
      reader.read_row(split.samples[static_cast<std::size_t>(i * split.size() / count)], 0, 0, row, workspace);
      ++had;
    } catch (const DataError&) {
      if (i + 1 == count && had == 0) {
        throw;
      }
    }
  }
  return watch.seconds() / static_cast<double>(had);
}

}  // namespace stoker::data
