// SPDX-License-Identifier: Apache-2.0
// Any bytes give an image or a DataError that names the file. A decoded part of an image equals the same part of the
// whole image, at every scale.
#include <algorithm>

#include "fuzz_target.h"
#include "stoker/base/error.h"
#include "stoker/data/decode/image_decode.h"

namespace stoker::fuzz {
namespace {

constexpr const char* kName = "input.bin";

// Small limits, so that no execution takes longer than a small image.
data::DecodeLimits limits(bool strict) {
  return {.max_pixels = 64 * 64, .max_side = 256, .max_scans = 12, .max_memory = 1 << 20, .strict = strict};
}

void expect_named(const DataError& error) {
  expect(std::string_view(error.what()).find(kName) != std::string_view::npos, "an error names the file");
}

augment::Image copy_of(const augment::ImageView& view, const augment::Region& region) {
  augment::Image out;
  out.reshape(region.width, region.height, view.channels);
  const augment::ImageView part = view.part(region.left, region.top, region.width, region.height);
  const auto bytes = static_cast<std::size_t>(region.width) * static_cast<std::size_t>(view.channels);
  for (int y = 0; y < region.height; ++y) {
    std::copy_n(part.row(y), bytes, out.pixels.data() + static_cast<std::size_t>(y) * bytes);
  }
  return out;
}

augment::Region region_within(int width, int height, std::uint64_t choice) {
  const auto draw = [&choice](int below) {
    const auto value = static_cast<int>(choice % static_cast<std::uint64_t>(below));
    choice /= static_cast<std::uint64_t>(below);
    return value;
  };
  augment::Region region;
  region.left = draw(width);
  region.top = draw(height);
  region.width = 1 + draw(width - region.left);
  region.height = 1 + draw(height - region.top);
  return region;
}

struct Asked {
  int channels = 3, shrink = 1;
  bool strict = false;
};

// The region of the image, or the whole image if region has no width. No pixels if it cannot be read.
augment::Image decoded(data::ImageDecoder& decoder, Bytes file, const Asked& asked, augment::Region region) {
  try {
    const auto [width, height] = decoder.open(file, asked.channels, limits(asked.strict), kName);
    expect(width >= 1 && height >= 1 && width <= 256 && height <= 256 && width * height <= 64 * 64, "limits are kept");
    if (asked.shrink > decoder.most_shrink()) {
      return {};
    }
    if (region.width == 0) {
      region = {0, 0, (width + asked.shrink - 1) / asked.shrink, (height + asked.shrink - 1) / asked.shrink};
    }
    return copy_of(decoder.decode(region, kName, asked.shrink), region);
  } catch (const DataError& error) {
    expect_named(error);
    return {};
  }
}

void probe(Bytes file, const augment::Image& whole) {
  try {
    const data::ImageInfo info = data::probe_image(file, limits(false), kName);
    const bool same = info.width == whole.width && info.height == whole.height;
    const bool turned = info.width == whole.height && info.height == whole.width;  // by an orientation after the header
    expect(whole.pixels.empty() || same || turned, "the header tells the size");
  } catch (const DataError& error) {
    expect_named(error);
    expect(whole.pixels.empty(), "an image has a header");
  }
}

}  // namespace
}  // namespace stoker::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  using namespace stoker::fuzz;
  static data::ImageDecoder decoder;  // reused like in a loader's thread: one image must not affect the next
  const Bytes file = std::as_bytes(std::span(data, size));
  const std::uint64_t choice = hash_of(file);
  Asked asked{.channels = (choice & 1) != 0 ? 3 : 1, .shrink = 1 << ((choice >> 1) & 3)};
  if ((choice & 16) != 0) {
    asked.shrink = 1;
  }
  const augment::Image whole = decoded(decoder, file, asked, {});
  if (asked.shrink == 1) {
    probe(file, whole);
  }
  asked.strict = true;
  const augment::Image strict = decoded(decoder, file, asked, {});
  if (whole.pixels.empty()) {
    expect(strict.pixels.empty(), "strict accepts no more images than lenient");
    return 0;
  }
  expect(strict.pixels.empty() || strict.pixels == whole.pixels, "strict changes no pixel");
  asked.strict = strict.pixels.empty() ? false : (choice & 8) != 0;
  const augment::Region region = region_within(whole.width, whole.height, choice >> 5);
  const augment::Image part = decoded(decoder, file, asked, region);
  expect(part.pixels == copy_of(whole.view(), region).pixels, "a part equals the same part of the whole");
  return 0;
}
