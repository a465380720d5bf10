// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/load/sample_reader.h"

#include <algorithm>
#include <utility>

#include "stoker/base/clock.h"
#include "stoker/base/error.h"

namespace stoker::data {
namespace {

Stage decoding(std::string_view format) {
  return format == "JPEG" ? Stage::kJpeg : format == "PNG" ? Stage::kPng : Stage::kDecode;
}

}  // namespace

SampleReader::SampleReader(std::shared_ptr<const ByteSource> source, int channels, const augment::ImagePolicy& policy,
                           SampleReaderOptions options)
    : source_(std::move(source)), options_(std::move(options)), channels_(channels), policy_(policy) {
  augment::check(policy_);
  if (channels != 1 && channels != 3) {
    fail<ConfigError>("data.loader", "channels must be 1 or 3, got {}", channels);
  }
  if (!source_) {
    fail<ConfigError>("data.loader", "the split has no source");
  }
}

std::int64_t SampleReader::row_bytes() const {
  return std::int64_t{policy_.out_height} * policy_.out_width * channels_;
}

// The image; at least the region that the draw needs, or all of it if it is to be kept.
augment::ImageView SampleReader::decode(std::int64_t index, const augment::DrawKey& key, std::string_view name,
                                        SampleWorkspace& workspace, augment::ImageDraw& drawn) const {
  const ImageDecoder::Size size = workspace.decoder.open(workspace.bytes, channels_, options_.limits, name);
  drawn = augment::draw(policy_, size.width, size.height, key);
  if (!options_.store) {
    drawn.shrink = augment::largest_shrink(policy_, drawn, workspace.decoder.most_shrink());
    if (drawn.shrink > 1 && !workspace.decoder.shrinking_pays()) {
      drawn.shrink = 1;
    }
    const augment::Region region = augment::needed(policy_, drawn);
    return options_.rows && drawn.shrink == 1
               ? decode_with_rows(*options_.rows, workspace.decoder, workspace.bytes, region, name, workspace.rows)
               : workspace.decoder.decode(region, name, drawn.shrink);
  }
  const augment::ImageView whole = workspace.decoder.decode({0, 0, size.width, size.height}, name);
  options_.store->put(index, whole);
  return whole;
}

void SampleReader::put_row(const augment::ImageDraw& drawn, augment::ImageView image, std::span<std::uint8_t> row,
                           SampleWorkspace& workspace) const {
  workspace.laps.enter(Stage::kResize);
  augment::crop(policy_, drawn, image, row, workspace.scratch);
  if (drawn.operations.count > 0) {
    workspace.laps.enter(Stage::kAugment);
    augment::execute(drawn.operations, {row.data(), policy_.out_width, policy_.out_height, channels_},
                     workspace.pixels);
  }
}

augment::ImageView SampleReader::decode_again(std::int64_t index, const augment::DrawKey& key,
                                              SampleWorkspace& workspace, augment::ImageDraw& drawn) const {
  try {
    return decode(index, key, source_->name(index), workspace, drawn);
  } catch (const DataError& error) {
    if (options_.known_bad) {
      options_.known_bad->learn(index, error.what());
    }
    throw;
  }
}

void SampleReader::read_row(std::int64_t index, std::uint64_t seed, std::int64_t epoch, std::span<std::uint8_t> row,
                            SampleWorkspace& workspace, std::uint32_t occurrence) const {
  const augment::DrawKey key{seed, static_cast<std::uint32_t>(epoch), static_cast<std::uint64_t>(index), occurrence};
  workspace.laps.begin(index);
  if (options_.store) {
    if (const augment::ImageView image = options_.store->find(index); image.pixels != nullptr) {
      put_row(augment::draw(policy_, image.width, image.height, key), image, row, workspace);
      return;
    }
  }
  if (options_.known_bad) {
    options_.known_bad->refuse(index);
  }
  source_->read_timed(index, workspace.bytes, workspace.laps);
  workspace.laps.pause();
  const CpuGate::Pass pass(workspace.gate);
  workspace.laps.enter(decoding(image_format(workspace.bytes)));
  augment::ImageDraw drawn;
  augment::ImageView image;
  try {
    image = decode(index, key, {}, workspace, drawn);
  } catch (const DataError&) {  // again with the name, which is only made for bad samples to save time
    image = decode_again(index, key, workspace, drawn);
  }
  put_row(drawn, image, row, workspace);
}

core::LoadTime estimate_load_time(const ImageSplit& split, int channels, const augment::ImagePolicy& policy, int k) {
  const std::int64_t count = std::min<std::int64_t>(k, split.size());
  if (count < 1) {
    return {};
  }
  const SampleReader reader(split.source, channels, policy);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(reader.row_bytes()));
  SampleWorkspace workspace;
  const Stopwatch watch;
  std::int64_t had = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    try {
      reader.read_row(split.samples[i * split.size() / count], 0, 0, row, workspace);
      ++had;
    } catch (const DataError&) {
      if (i + 1 == count && had == 0) {
        throw;
      }
    }
  }
  const double each = watch.seconds() / static_cast<double>(had);
  workspace.laps.end();
  std::int64_t slowest = -1;
  const StageLaps* const laps = &workspace.laps;
  const core::StageSums spent = core::sum_of(sum({&laps, 1}, slowest).stages);
  return {each, spent.seconds > 0 ? each * spent.asleep_seconds / spent.seconds : 0};
}

}  // namespace stoker::data
