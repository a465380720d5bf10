// SPDX-License-Identifier: Apache-2.0
// A row equals a cut of a padded image, mirrored if drawn so, whether it is filled at once or in pieces, as by a GPU's
// threads.
#include "stoker/resident/set.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <stop_token>
#include <vector>

#include "support/late_device.h"
#include "support/made_up_images.h"

namespace stoker::resident {
namespace {

using augment::ImageShape;
using augment::WindowDraw;
using testing::MadeUpImages;

// With tensor operations: wide black margins, a cut, a mirror.
at::Tensor slow_row(const at::Tensor& image, const WindowDraw& drawn) {
  const std::int64_t height = image.size(0), width = image.size(1), margin = 2 * std::max(height, width);
  at::Tensor padded = at::zeros({height + 2 * margin, width + 2 * margin, image.size(2)}, at::kByte);
  padded.narrow(0, margin, height).narrow(1, margin, width).copy_(image);
  const at::Tensor cut = padded.narrow(0, margin + drawn.top, height).narrow(1, margin + drawn.left, width);
  return drawn.mirrored != 0 ? cut.flip({1}) : cut;
}

TEST(ResidentSet, RowsAreCutsOfPaddedImages) {
  for (const auto& [height, width, channels] : {std::array{7, 5, 3}, {6, 8, 1}, {1, 1, 1}, {4, 9, 4}}) {
    const MadeUpImages images({40, height, width, channels}, 40);
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(images.shape().bytes()));
    images.read(0, bytes);
    const at::Tensor all = at::from_blob(bytes.data(), {40, height, width, channels}, at::kByte);
    ResidentSet set(images.shape(), c10::Device(c10::kCPU), nullptr);
    ASSERT_TRUE(set.fill(images, {}));
    augment::WindowRows rows;
    images.add_rows(0, 0, rows);
    const at::Tensor batch = set.make_batch(at::from_blob(rows.windows.data(), {40, WindowDraw::kWords}, at::kInt));
    for (std::int64_t row = 0; row < 40; ++row) {
      const WindowDraw& drawn = rows.windows[static_cast<std::size_t>(row)];
      EXPECT_TRUE(batch[row].equal(slow_row(all[drawn.image], drawn)))
          << drawn.left << ", " << drawn.top << ", " << drawn.mirrored;
    }
  }
}

TEST(ResidentSet, IsFilledByALateDevice) {
  const MadeUpImages images({6000, 40, 30, 1}, 64);  // 7.2 MB: two copies
  std::vector<std::uint8_t> all(static_cast<std::size_t>(images.shape().bytes()));
  images.read(0, all);
  ResidentSet set(images.shape(), c10::Device(c10::kCPU), std::make_unique<testing::LateStream>());
  ASSERT_TRUE(set.fill(images, {}));
  std::vector<WindowDraw> windows{{.image = 0}, {.image = 3495}, {.image = 5999}};
  const at::Tensor batch = set.make_batch(at::from_blob(windows.data(), {3, WindowDraw::kWords}, at::kInt));
  for (std::size_t row = 0; row < windows.size(); ++row) {
    const auto* image = all.data() + static_cast<std::size_t>(windows[row].image) * 1200;
    EXPECT_TRUE(std::equal(image, image + 1200, batch[static_cast<std::int64_t>(row)].const_data_ptr<std::uint8_t>()));
  }
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_FALSE(set.fill(images, stopped.get_token()));
}

TEST(ResidentSet, PiecesOfARowAreTheRow) {
  const MadeUpImages images({12, 6, 8, 3}, 12);
  const ImageShape shape = images.shape();
  const auto bytes = static_cast<std::size_t>(shape.image_bytes());
  std::vector<std::uint8_t> image(bytes), whole(bytes), pieces(bytes);
  augment::WindowRows rows;
  images.add_rows(0, 0, rows);
  for (const WindowDraw& drawn : rows.windows) {
    images.read(drawn.image, image);
    augment::fill_window(shape, drawn, image.data(), 0, shape.image_bytes(), whole.data());
    for (const int piece : {1, 4, 16}) {
      for (int first = 0; first < shape.image_bytes(); first += piece) {
        augment::fill_window(shape, drawn, image.data(), first, piece, pieces.data() + first);
      }
      EXPECT_EQ(pieces, whole) << piece;
    }
  }
}

}  // namespace
}  // namespace stoker::resident
