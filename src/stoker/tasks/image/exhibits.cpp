// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/image/exhibits.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "stoker/augment/resize.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/decode/image_decode.h"
#include "stoker/data/decode/png_encode.h"
#include "stoker/tasks/image/preprocessing.h"

namespace stoker::tasks {
namespace {

constexpr std::size_t kMost = 24;  // images of a gallery
constexpr int kSide = 96;          // pixels

struct EvaluatedImage {
  std::int64_t index = 0;  // of the sample in the split's source
  std::int64_t target = 0, predicted = 0;
  double probability = 0;
  [[nodiscard]] bool right() const { return target == predicted; }
};

std::vector<EvaluatedImage> read(const at::Tensor& verdicts, std::span<const std::int64_t> indices) {
  const auto cells = verdicts.accessor<float, 2>();
  std::vector<EvaluatedImage> all;
  for (std::int64_t i = 0; i < verdicts.size(0); ++i) {
    all.push_back({indices[static_cast<std::size_t>(i)], static_cast<std::int64_t>(cells[i][0]),
                   static_cast<std::int64_t>(cells[i][1]), static_cast<double>(cells[i][2])});
  }
  return all;
}

// The image of a sample as the network sees it, at most kSide per side.
std::vector<std::byte> image_of(const data::ImageSplit& split, std::int64_t index, const ImageCard& card) {
  std::vector<std::byte> bytes;
  split.source->read(index, bytes);
  augment::Image image, seen;
  data::decode_image(bytes, card.pixels.channels, {.strict = false}, image, split.source->name(index));
  ImagePreprocessing pixels = card.pixels;
  if (pixels.image_size > kSide) {
    pixels.resize = pixels.resize * kSide / pixels.image_size;
    pixels.image_size = kSide;
  }
  const augment::ImagePolicy policy = evaluation_policy(pixels);
  seen.reshape(policy.out_width, policy.out_height, card.pixels.channels);
  augment::ResizeScratch scratch;
  augment::execute(policy, augment::draw(policy, image.width, image.height, {}), image.view(), seen.pixels, scratch);
  return data::encode_png(seen.view());
}

Exhibit gallery(const std::string& name, const std::string& title, const std::vector<EvaluatedImage>& chosen,
                const data::ImageSplit& split, const ImageCard& card) {
  Exhibit exhibit{name, title, {}, {}};
  nlohmann::json items = nlohmann::json::array();
  for (const EvaluatedImage& each : chosen) {
    const std::string file = fmt::format("{}-{}.png", name, items.size());
    try {
      exhibit.files.emplace_back(file, image_of(split, each.index, card));
    } catch (const DataError&) {
      continue;  // training has reported it
    }
    const std::string said = printable(card.classes.at(static_cast<std::size_t>(each.predicted)));
    const std::string is = printable(card.classes.at(static_cast<std::size_t>(each.target)));
    items.push_back({{"image", file},
                     {"caption", each.right() ? fmt::format("{} {:.2f}", said, each.probability)
                                              : fmt::format("{}, predicted {} {:.2f}", is, said, each.probability)},
                     {"good", each.right()}});
  }
  exhibit.json = nlohmann::json{
      {"kind", "gallery"},
      {"title", title},
      {"note", fmt::format("of the {} split", split.name)},
      {"items",
       items}}.dump(1);
  return exhibit;
}

}  // namespace

std::vector<Exhibit> image_exhibits(const data::ImageSplit& split, const at::Tensor& verdicts,
                                    std::span<const std::int64_t> indices, const ImageCard& card) {
  const std::vector<EvaluatedImage> all = read(verdicts, indices);
  std::vector<EvaluatedImage> some, mistakes;
  for (std::size_t i = 0; i < std::min(kMost, all.size()); ++i) {
    some.push_back(all[i * all.size() / std::min(kMost, all.size())]);  // spread over the split
  }
  std::ranges::copy_if(all, std::back_inserter(mistakes), [](const EvaluatedImage& each) { return !each.right(); });
  std::ranges::stable_sort(mistakes, std::greater(), &EvaluatedImage::probability);
  mistakes.resize(std::min(kMost, mistakes.size()));
  std::vector<Exhibit> exhibits = {gallery("predictions", "Predictions", some, split, card)};
  if (!mistakes.empty()) {
    exhibits.push_back(gallery("mistakes", "Most confident mistakes", mistakes, split, card));
  }
  return exhibits;
}

}  // namespace stoker::tasks
