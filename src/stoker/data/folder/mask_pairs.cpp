// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <unordered_map>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/decode/image_decode.h"
#include "stoker/data/folder/foreign_layout.h"
#include "stoker/data/folder/layout_words.h"

namespace stoker::data {
namespace {

constexpr double kPaired = 0.8;             // share of the masks with an image; data sets often miss a few images
constexpr std::size_t kLooks = 8;           // pairs that are decoded
constexpr double kLikeMasks = 0.75;         // share of these that must match
constexpr std::int64_t kLargest = 1 << 26;  // bytes of a file that is decoded
// Share of pixels with one of the 16 most frequent grey values: 99.4 to 100 % in masks saved as JPEG, quality 60 to 95,
// at most 94.4 % in 5,000 images of CIFAR-10 and 79.7 % in photographs of ImageNet.
constexpr std::size_t kValues = 16;
constexpr double kOfPixels = 0.95;

struct Pair {
  const ScannedFile* mask = nullptr;
  const ScannedFile* image = nullptr;
};

// The masks by name, each with its image if there is one.
std::vector<Pair> pairs_by_name(const FolderScan& scan) {
  std::vector<Pair> pairs;
  std::unordered_map<std::string, std::vector<std::size_t>> by_key;  // an image may have several masks
  for (const ScannedFile& file : scan.images) {
    if (ImageRole role = role_of(file.path); role.mask) {
      by_key[std::move(role.key)].push_back(pairs.size());
      pairs.push_back({&file, nullptr});
    }
  }
  if (pairs.empty()) {
    return pairs;
  }
  for (const ScannedFile& file : scan.images) {
    const ImageRole role = role_of(file.path);
    const auto found = role.mask ? by_key.end() : by_key.find(role.key);
    if (found != by_key.end()) {
      std::ranges::for_each(found->second, [&](std::size_t i) { pairs[i].image = &file; });
    }
  }
  return pairs;
}

// Whether nearly all pixels have one of a few grey values.
bool has_few_values(const augment::Image& grey) {
  std::array<std::int64_t, 256> counts{};
  for (const std::uint8_t value : grey.pixels) {
    ++counts[value];
  }
  const std::int64_t all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  std::ranges::nth_element(counts, counts.begin() + kValues, std::greater<>());
  const std::int64_t most = std::accumulate(counts.begin(), counts.begin() + kValues, std::int64_t{0});
  return static_cast<double>(most) >= kOfPixels * static_cast<double>(all);
}

bool looks_like_pair(const FolderScan& scan, const Pair& pair) {
  const auto decode = [&](const ScannedFile& file, augment::Image& grey) {
    const std::string bytes = ends_of(scan, file, kLargest);
    decode_image(as_bytes(bytes), 1, {}, grey, file.path);
  };
  augment::Image mask, image;
  try {
    decode(*pair.mask, mask);
    decode(*pair.image, image);
  } catch (const DataError&) {  // a bad image decides nothing
    return false;
  }
  return mask.width == image.width && mask.height == image.height && has_few_values(mask) && !has_few_values(image);
}

}  // namespace

std::optional<ForeignLayout> find_masks(const FolderScan& scan) {
  std::vector<Pair> pairs = pairs_by_name(scan);
  const std::size_t named = pairs.size();
  std::erase_if(pairs, [](const Pair& pair) { return pair.image == nullptr; });
  if (pairs.empty() || static_cast<double>(pairs.size()) < kPaired * static_cast<double>(named)) {
    return std::nullopt;
  }
  const std::size_t looks = std::min(kLooks, pairs.size());
  std::size_t alike = 0;
  for (std::size_t i = 0; i < looks; ++i) {
    alike += looks_like_pair(scan, pairs[i * pairs.size() / looks]) ? 1 : 0;
  }
  if (static_cast<double>(alike) < kLikeMasks * static_cast<double>(looks)) {
    return std::nullopt;
  }
  return ForeignLayout{
      "segmentation",
      fmt::format("{} images are paired by name, such as {} and {}; in {} of {} checked pairs the first looks like a "
                  "mask (same size, few grey values)",
                  pairs.size(), printable(pairs.front().mask->path), printable(pairs.front().image->path), alike,
                  looks)};
}

}  // namespace stoker::data
