// SPDX-License-Identifier: Apache-2.0
// An image is shown with its own caption, even if other images of the split could not be read.
#include "stoker/tasks/image/exhibits.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "support/images.h"
#include "support/temp_folder.h"

namespace stoker::tasks {
namespace {

TEST(ImageExhibits, ACaptionIsOfItsOwnImage) {
  const testing::TempFolder folder;
  for (int i = 0; i < 6; ++i) {
    folder.write(fmt::format("{}/{}.png", i < 3 ? "a" : "b", i), testing::small_png(i));
  }
  const data::ImageSplit split = data::open_image_folder(folder.path(), {.val = 0}).train;
  ImageCard card;
  card.classes = {"a", "b"};
  card.pixels.channels = 3;
  card.pixels.image_size = card.pixels.resize = 8;
  const std::array<std::int64_t, 6> all = {0, 1, 2, 3, 4, 5};
  const at::Tensor verdicts =
      at::tensor({0., 0., .9, 0., 0., .8, 0., 0., .7, 1., 1., .6, 1., 0., .5, 1., 1., .4}, at::kFloat).reshape({6, 3});
  const std::vector<Exhibit> whole = image_exhibits(split, verdicts, all, card);
  // Samples 1 and 2 have no verdict.
  const std::array<std::int64_t, 4> some = {0, 3, 4, 5};
  const at::Tensor fewer = at::tensor({0., 0., .9, 1., 1., .6, 1., 0., .5, 1., 1., .4}, at::kFloat).reshape({4, 3});
  const std::vector<Exhibit> part = image_exhibits(split, fewer, some, card);
  ASSERT_EQ(whole.size(), 2U);  // predictions, mistakes
  ASSERT_EQ(part.size(), 2U);
  const auto captions = nlohmann::json::parse(whole[0].json)["items"],
             fewer_captions = nlohmann::json::parse(part[0].json)["items"];
  ASSERT_EQ(part[0].files.size(), 4U);
  for (std::size_t row = 0; row < some.size(); ++row) {
    const auto sample = static_cast<std::size_t>(some[row]);
    EXPECT_EQ(part[0].files[row].second, whole[0].files[sample].second) << sample;
    EXPECT_EQ(fewer_captions[row]["caption"], captions[sample]["caption"]) << sample;
  }
  ASSERT_EQ(part[1].files.size(), 1U);
  EXPECT_EQ(part[1].files[0].second, whole[0].files[4].second);
}

}  // namespace
}  // namespace stoker::tasks
