// SPDX-License-Identifier: Apache-2.0
// Images that stay decoded: every thread finds the images of all threads, and the store stays within its room.
#include "stoker/data/load/pixel_store.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "stoker/base/error.h"
#include "support/images.h"

namespace stoker::data {
namespace {

using testing::computed_image;

augment::Image image(int index) { return computed_image(20 + index % 7, 15 + index % 5, 3, index); }

void expect_image(augment::ImageView view, int index) {
  const augment::Image expected = image(index);
  ASSERT_EQ(view.width, expected.width);
  ASSERT_EQ(view.height, expected.height);
  ASSERT_EQ(view.channels, 3);
  for (int y = 0; y < view.height; ++y) {
    ASSERT_TRUE(std::equal(view.row(y), view.row(y) + view.width * 3, expected.view().row(y))) << index;
  }
}

TEST(PixelStore, ThreadsFindWhatAnyOfThemHasPut) {
  constexpr int kImages = 400;
  PixelStore store(kImages, 1 << 20);
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&store, thread] {
        for (int i = 0; i < 3 * kImages; ++i) {
          const int index = (i * (2 * thread + 1)) % kImages;  // the same images, in another order per thread
          store.prefetch_entry(index);
          store.prefetch_pixels(index);
          if (const augment::ImageView found = store.find(index); found.pixels != nullptr) {
            expect_image(found, index);
          } else {
            store.put(index, image(index).view());
          }
        }
      });
    }
  }
  std::int64_t bytes = 0;
  for (int index = 0; index < kImages; ++index) {
    expect_image(store.find(index), index);
    bytes += static_cast<std::int64_t>(image(index).pixels.size());
  }
  EXPECT_EQ(store.bytes(), bytes);
}

TEST(PixelStore, HoldsNoMoreThanThereIsRoomFor) {
  PixelStore store(3, 2000);
  store.put(0, image(0).view());  // 900 bytes
  store.put(1, image(1).view());  // 1,008
  store.put(2, image(2).view());  // no room
  store.put(0, image(2).view());  // already stored
  expect_image(store.find(0), 0);
  expect_image(store.find(1), 1);
  EXPECT_EQ(store.find(2).pixels, nullptr);
  EXPECT_EQ(store.bytes(), 900 + 1008);
  const augment::Image wide = computed_image(60, 40, 3);
  PixelStore part(1, 1 << 20);
  part.put(0, wide.view().part(10, 5, 20, 15));  // with gaps between its rows
  EXPECT_EQ(part.find(0).stride, 60);
  EXPECT_TRUE(std::equal(part.find(0).row(3), part.find(0).row(3) + 60, wide.view().part(10, 5, 20, 15).row(3)));
  EXPECT_THROW(PixelStore(-1, 0), ConfigError);
  EXPECT_THROW(PixelStore(0, -1), ConfigError);
}

}  // namespace
}  // namespace stoker::data
