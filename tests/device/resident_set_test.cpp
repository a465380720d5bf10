// SPDX-License-Identifier: Apache-2.0
// A row is what cutting a padded picture and mirroring the cut gives, whether it is filled at once or in pieces, as a
// GPU's threads do it.
#include "stoker/device/resident_set.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <stop_token>
#include <vector>

#include "support/late_device.h"
#include "support/made_up_pictures.h"

namespace stoker::device {
namespace {

using augment::PictureShape;
using augment::WindowDraw;
using testing::MadeUpPictures;

// By tensor operations: wide black margins, a cut, a mirror.
at::Tensor slow_row(const at::Tensor& picture, const WindowDraw& drawn) {
  const std::int64_t height = picture.size(0), width = picture.size(1), margin = 2 * std::max(height, width);
  at::Tensor padded = at::zeros({height + 2 * margin, width + 2 * margin, picture.size(2)}, at::kByte);
  padded.narrow(0, margin, height).narrow(1, margin, width).copy_(picture);
  const at::Tensor cut = padded.narrow(0, margin + drawn.top, height).narrow(1, margin + drawn.left, width);
  return drawn.mirrored != 0 ? cut.flip({1}) : cut;
}

TEST(ResidentSet, RowsAreCutsOfPaddedPictures) {
  for (const auto& [height, width, channels] : {std::array{7, 5, 3}, {6, 8, 1}, {1, 1, 1}, {4, 9, 4}}) {
    const MadeUpPictures pictures({40, height, width, channels}, 40);
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(pictures.shape().bytes()));
    pictures.read(0, bytes);
    const at::Tensor all = at::from_blob(bytes.data(), {40, height, width, channels}, at::kByte);
    ResidentSet set(pictures.shape(), c10::Device(c10::kCPU), nullptr);
    ASSERT_TRUE(set.fill(pictures, {}));
    augment::WindowRows rows;
    pictures.add_rows(0, 0, rows);
    const at::Tensor batch = set.make_batch(at::from_blob(rows.windows.data(), {40, WindowDraw::kWords}, at::kInt));
    for (std::int64_t row = 0; row < 40; ++row) {
      const WindowDraw& drawn = rows.windows[static_cast<std::size_t>(row)];
      EXPECT_TRUE(batch[row].equal(slow_row(all[drawn.picture], drawn)))
          << drawn.left << ", " << drawn.top << ", " << drawn.mirrored;
    }
  }
}

TEST(ResidentSet, IsFilledByALateDevice) {
  const MadeUpPictures pictures({6000, 40, 30, 1}, 64);  // 7.2 MB: two copies
  std::vector<std::uint8_t> all(static_cast<std::size_t>(pictures.shape().bytes()));
  pictures.read(0, all);
  ResidentSet set(pictures.shape(), c10::Device(c10::kCPU), std::make_unique<testing::LateStream>());
  ASSERT_TRUE(set.fill(pictures, {}));
  std::vector<WindowDraw> windows{{.picture = 0}, {.picture = 3495}, {.picture = 5999}};
  const at::Tensor batch = set.make_batch(at::from_blob(windows.data(), {3, WindowDraw::kWords}, at::kInt));
  for (std::size_t row = 0; row < windows.size(); ++row) {
    const auto* picture = all.data() + static_cast<std::size_t>(windows[row].picture) * 1200;
    EXPECT_TRUE(
        std::equal(picture, picture + 1200, batch[static_cast<std::int64_t>(row)].const_data_ptr<std::uint8_t>()));
  }
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_FALSE(set.fill(pictures, stopped.get_token()));
}

TEST(ResidentSet, PiecesOfARowAreTheRow) {
  const MadeUpPictures pictures({12, 6, 8, 3}, 12);
  const PictureShape shape = pictures.shape();
  const auto bytes = static_cast<std::size_t>(shape.picture_bytes());
  std::vector<std::uint8_t> picture(bytes), whole(bytes), pieces(bytes);
  augment::WindowRows rows;
  pictures.add_rows(0, 0, rows);
  for (const WindowDraw& drawn : rows.windows) {
    pictures.read(drawn.picture, picture);
    augment::fill_window(shape, drawn, picture.data(), 0, shape.picture_bytes(), whole.data());
    for (const int piece : {1, 4, 16}) {
      for (int first = 0; first < shape.picture_bytes(); first += piece) {
        augment::fill_window(shape, drawn, picture.data(), first, piece, pieces.data() + first);
      }
      EXPECT_EQ(pieces, whole) << piece;
    }
  }
}

}  // namespace
}  // namespace stoker::device
