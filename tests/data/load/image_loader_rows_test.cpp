// SPDX-License-Identifier: Apache-2.0
// Batches with an index of JPEG rows are those without, for every number of threads and ranks, from files and a tar, in
// the run that learns the rows and in one that begins with them.
#include <gtest/gtest.h>

#include "stoker/data/decode/jpeg_encode.h"
#include "support/images.h"
#include "support/matrix_batches.h"
#include "support/tar_builder.h"
#include "support/temp_folder.h"

namespace stoker::testing {
namespace {

constexpr int kImages = 50, kCalls = 3 * (3 + 1);  // three epochs of batches of 24

class ImageLoaderRows : public ::testing::Test {
 protected:
  void SetUp() override {
    TarBuilder tar;
    for (int i = 0; i < kImages; ++i) {
      const augment::Image image = computed_image(150 + 2 * i, 240 - i, i % 5 == 4 ? 1 : 3, 37 * i);
      std::string file(as_text(data::encode_jpeg(image.view(), 95)));
      file.resize(i == 7 ? file.size() / 2 : file.size());
      const std::string name = fmt::format("{}/{:02}.jpg", i % 2 == 0 ? "a" : "b", i);
      folder_.write("set/" + name, file);
      finds_rows_ = finds_rows_ || finds_rows(file);
      tar.add(name, file);
    }
    folder_.write("set.tar", tar.done());
  }
  // Whether this processor has a decoder that finds rows, and finds those of this file.
  static bool finds_rows(const std::string& file) {
    data::ImageDecoder decoder;
    data::JpegRows rows;
    (void)decoder.open(as_bytes(file), 3, {}, "x.jpg");
    (void)decoder.decode({0, 0, 1, 1}, "x.jpg", 1, &rows);
    return !rows.empty();
  }
  [[nodiscard]] data::ImageSplit split(bool tar) const {
    return data::open_image_folder(folder_ / (tar ? "set.tar" : "set"), {.val = 0}).train;
  }
  [[nodiscard]] static std::vector<std::string> lines(const data::ImageLoaderOptions& options) {
    MatrixLoaders loaders(options, {});
    std::vector<std::string> lines;
    for (int call = 0; call < kCalls; ++call) {
      lines.push_back(loaders.next());
    }
    return lines;
  }

  TempFolder folder_;
  bool finds_rows_ = false;
};

TEST_F(ImageLoaderRows, ChangeNoBatch) {
  const std::vector<std::string> expected = lines(matrix_options(split(false), {}));
  for (const bool tar : {false, true}) {
    for (const MatrixWay& way : {MatrixWay{}, MatrixWay{.threads = 1, .ranks = 2}, MatrixWay{.threads = 3}}) {
      const TempFolder cache;
      for (const bool anew : {false, true}) {
        SCOPED_TRACE(fmt::format("{} threads, {} ranks, tar {}, again {}", way.threads, way.ranks, tar, anew));
        data::ImageLoaderOptions options = matrix_options(split(tar), way);
        options.rows = std::make_shared<data::RowIndex>(
            *options.split.source,
            data::RowIndexOptions{
                .cache = cache.path(), .from_samples = 1, .write_every = std::chrono::milliseconds(20)});
        EXPECT_EQ(options.rows->listed() > 0, anew && finds_rows_);
        EXPECT_EQ(lines(options), expected);
      }
    }
  }
}

}  // namespace
}  // namespace stoker::testing
