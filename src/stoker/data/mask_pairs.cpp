// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <unordered_map>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/foreign_layout.h"
#include "stoker/data/image_decode.h"
#include "stoker/data/layout_words.h"

namespace stoker::data {
namespace {

constexpr double kPaired = 0.8;             // of the masks by name: a few pictures are lost in every set
constexpr std::size_t kLooks = 8;           // pairs that are decoded
constexpr double kLikeMasks = 0.75;         // of these
constexpr std::int64_t kLargest = 1 << 26;  // bytes of a file that is decoded
// Pixels that have one of the 16 most frequent grey values: 99.4 to 100 % in masks saved as JPEG of quality 60 to 95,
// at most 94.4 % in 5,000 pictures of CIFAR-10 and 79.7 % in photographs of ImageNet.
constexpr std::size_t kValues = 16;
constexpr double kOfPixels = 0.95;

struct Pair {
  const ScannedFile* mask = nullptr;
  const ScannedFile* picture = nullptr;
};

// The masks by name, each with the picture of its name, if there is one.
std::vector<Pair> pairs_by_name(const FolderScan& scan) {
  std::vector<Pair> pairs;
  std::unordered_map<std::string, std::vector<std::size_t>> by_key;  // a picture may have several masks
  for (const ScannedFile& file : scan.pictures) {
    if (PictureRole role = role_of(file.path); role.mask) {
      by_key[std::move(role.key)].push_back(pairs.size());
      pairs.push_back({&file, nullptr});
    }
  }
  if (pairs.empty()) {
    return pairs;
  }
  for (const ScannedFile& file : scan.pictures) {
    const PictureRole role = role_of(file.path);
    const auto found = role.mask ? by_key.end() : by_key.find(role.key);
    if (found != by_key.end()) {
      std::ranges::for_each(found->second, [&](std::size_t i) { pairs[i].picture = &file; });
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
  augment::Image mask, picture;
  try {
    decode(*pair.mask, mask);
    decode(*pair.picture, picture);
  } catch (const DataError&) {  // a bad picture says nothing
    return false;
  }
  return mask.width == picture.width && mask.height == picture.height && has_few_values(mask) &&
         !has_few_values(picture);
}

}  // namespace

std::optional<ForeignLayout> find_masks(const FolderScan& scan) {
  std::vector<Pair> pairs = pairs_by_name(scan);
  const std::size_t named = pairs.size();
  std::erase_if(pairs, [](const Pair& pair) { return pair.picture == nullptr; });
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
      fmt::format("{} pictures are paired by name, as {} and {}; in {} of the {} pairs looked at the one has few grey "
                  "values and the size of the other, as a mask has",
                  pairs.size(), printable(pairs.front().mask->path), printable(pairs.front().picture->path), alike,
                  looks)};
}

}  // namespace stoker::data
