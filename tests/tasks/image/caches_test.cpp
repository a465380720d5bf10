// SPDX-License-Identifier: Apache-2.0
// Which trainings keep an index of JPEG rows, and that the next training of the same data finds it.
#include "stoker/tasks/image/caches.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "stoker/data/folder/cache_folder.h"
#include "stoker/data/folder/image_folder.h"
#include "stoker/tasks/registry.h"
#include "support/default_values.h"
#include "support/many_photographs.h"

namespace stoker::tasks {
namespace {

using stoker::testing::TempFolder;

class ImageCachesTest : public ::testing::Test {
 protected:
  void SetUp() override { stoker::testing::write_many_photographs(folder_); }
  // How many images the list in the cache has.
  [[nodiscard]] std::int64_t listed() const {
    const auto source = data::open_image_folder(folder_.path()).train.source;
    return data::RowIndex(*source, {.cache = data::cache_folder()}).listed();
  }
  // One epoch of a training.
  void train(const char* augment, const char* cache) const {
    OpenOptions options;
    options.val = 0.1;
    options.model = "mlp";
    const TaskKind& kind = task_kind("image_classification");
    auto task = kind.open(folder_.path(), options);
    core::TaskValues own = stoker::testing::default_values(kind.info().options, task->recipe({}));
    own["augment"] = augment;
    own["cache"] = cache;
    own["image_size"] = "32";
    const auto ready = std::move(*task).settle("mlp", own);
    BatchRequest request;
    request.batch = 50;
    const auto source = ready->training_batches(request);
    while (source->next()) {
    }
  }

  TempFolder folder_;
};

TEST_F(ImageCachesTest, RowsAreKeptForRandomCropsOfImagesThatAreDecodedAgain) {
  const auto source = data::open_image_folder(folder_.path()).train.source;
  ImageCaches caches;
  ImageOptions options;
  options.cache = 0;
  const auto rows = caches.rows_of(source, options, augment::Crop::kRandomResized);
  EXPECT_NE(rows, nullptr);
  EXPECT_EQ(caches.rows_of(source, options, augment::Crop::kRandomResized), rows);
  EXPECT_EQ(caches.rows_of(source, options, augment::Crop::kPad), nullptr);
  EXPECT_EQ(caches.rows_of(source, options, augment::Crop::kResizeCentre), nullptr);
  options.cache = 1;
  EXPECT_EQ(caches.rows_of(source, options, augment::Crop::kRandomResized), nullptr);
}

TEST_F(ImageCachesTest, ATrainingLeavesRowsToTheNextOne) {
  data::JpegRows rows;
  data::ImageDecoder decoder;
  const std::string file = read_text(folder_ / "one/0.jpg");
  const auto size = decoder.open(as_bytes(file), 3, {}, "x");
  (void)decoder.decode({0, 0, size.width, size.height}, "x", 1, &rows);
  train("resized_crop_flip", "1000");
  train("flip", "0");
  EXPECT_EQ(listed(), 0);
  train("resized_crop_flip", "0");
  EXPECT_EQ(listed(), rows.empty() ? 0 : 2) << "two contents";
}

}  // namespace
}  // namespace stoker::tasks
