// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/load/image_loader_resident.h"

#include <limits>
#include <utility>

#include "stoker/augment/pixel_kernels.h"
#include "stoker/base/error.h"

namespace stoker::data {
namespace {

// The policy for whole images, scaled to the size of a row.
augment::ImagePolicy whole_image(augment::ImagePolicy policy) {
  policy.crop = augment::Crop::kNone;
  policy.flip = false;
  return policy;
}

ImageLoaderOptions resident(ImageLoaderOptions options) {
  if (const std::string why = why_not_resident(options.policy, options.mix); !why.empty()) {
    fail<ConfigError>("data.resident", "these batches cannot come from resident images: {}", why);
  }
  if (options.split.size() > std::numeric_limits<std::int32_t>::max()) {
    fail<ConfigError>("data.resident", "{} images are too many; the limit is 2^32 - 1", options.split.size());
  }
  return checked(std::move(options));
}

}  // namespace

std::string why_not_resident(const augment::ImagePolicy& policy, const augment::Mix& mix) {
  if (policy.crop != augment::Crop::kNone && policy.crop != augment::Crop::kPad) {
    return "crops of varying size";
  }
  if (!policy.operations.empty()) {
    return "operations other than crop and flip";
  }
  if (mix.on()) {
    return "MixUp or CutMix";
  }
  return policy.shrink ? "decode=fast" : "";
}

ResidentSplit::ResidentSplit(ImageLoaderOptions options)
    : options_(resident(std::move(options))),
      reader_(options_.split.source, options_.channels, whole_image(options_.policy),
              {options_.store, options_.known_bad, options_.limits}) {}

augment::ImageShape ResidentSplit::shape() const {
  return {options_.split.size(), options_.policy.out_height, options_.policy.out_width, options_.channels};
}

void ResidentSplit::add_rows(std::int64_t epoch, std::int64_t step, augment::WindowRows& rows) const {
  std::vector<std::int64_t> positions;
  options_.order->positions(epoch, step, positions);
  const std::optional<std::int64_t> first_draw = options_.order->first_draw(step);
  const augment::ImagePolicy& policy = options_.policy;
  for (std::size_t row = 0; row < positions.size(); ++row) {
    const std::int64_t position = positions[row], index = options_.split.samples[position];
    const std::size_t occurrence = first_draw ? static_cast<std::size_t>(*first_draw) + row : 0;
    const augment::ImageDraw drawn =
        augment::draw(policy, policy.out_width, policy.out_height,
                      {options_.seed, static_cast<std::uint32_t>(epoch), static_cast<std::uint64_t>(index),
                       static_cast<std::uint32_t>(occurrence)});
    rows.indices.push_back(index);
    rows.targets.push_back(options_.split.labels[position]);
    rows.windows.push_back({static_cast<std::int32_t>(position), drawn.offset_x, drawn.offset_y, drawn.flipped});
  }
}

void ResidentSplit::read(std::int64_t first, std::span<std::uint8_t> out) const {
  const auto bytes = static_cast<std::size_t>(reader_.row_bytes());
  SampleWorkspace workspace;
  workspace.scratch.kernels = options_.plain ? &augment::plain_kernels() : nullptr;
  for (std::size_t at = 0; at + bytes <= out.size(); at += bytes, ++first) {
    reader_.read_row(options_.split.samples[first], options_.seed, 0, out.subspan(at, bytes), workspace);
  }
}

}  // namespace stoker::data
