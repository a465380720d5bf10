// SPDX-License-Identifier: Apache-2.0
// Decoding a damaged, hostile or unusual file ends in an image or a DataError. If Pillow decodes the file too, the
// image has the same size. Tests the committed files, and all 225 files if STOKER_DATA has them.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "stoker/base/error.h"
#include "stoker/data/decode/image_decode.h"
#include "support/images.h"
#include "support/shared_data.h"

namespace stoker::data {
namespace {

namespace fs = std::filesystem;

// Decodes every file in the folder's MANIFEST.tsv with 1 and 3 channels; returns the number of files.
int decode_all(const fs::path& folder) {
  std::ifstream manifest(folder / "MANIFEST.tsv");
  std::string line;
  std::getline(manifest, line);
  int files = 0, decoded = 0, both = 0;
  while (std::getline(manifest, line)) {
    const std::string name = line.substr(0, line.find('\t'));
    std::vector<std::byte> bytes;
    read_file(folder / name, bytes);
    ++files;
    for (const int channels : {1, 3}) {
      augment::Image out;
      try {
        decode_image(bytes, channels, {}, out, name);
      } catch (const DataError& error) {
        EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
        continue;
      }
      ++decoded;
      EXPECT_EQ(out.channels, channels) << name;
      EXPECT_EQ(out.pixels.size(),
                static_cast<std::size_t>(out.width) * static_cast<std::size_t>(out.height * channels));
      const ImageInfo info = probe_image(bytes, {}, name);
      EXPECT_EQ(info.width, out.width) << name;
      int width = 0, height = 0;
      const std::size_t verdict = line.rfind("\topens ");  // "opens JPEG RGB 128x96"
      if (verdict != std::string::npos &&
          std::sscanf(line.c_str() + verdict, " opens %*s %*s %dx%d", &width, &height) == 2) {
        ++both;  // Pillow's size is from before rotation: width and height may be swapped
        EXPECT_TRUE((out.width == width && out.height == height) || (out.width == height && out.height == width))
            << line;
      }
    }
  }
  EXPECT_GE(decoded, files / 4);
  EXPECT_GE(both, files / 4);
  return files;
}

TEST(BrokenImages, CommittedOnesEndWell) {
  EXPECT_EQ(decode_all(testing::source_folder() / "tests/data/broken-images"), 39);
}

TEST(BrokenImages, AllEndWell) {
  const fs::path folder = testing::shared_data("broken-images");
  if (folder.empty()) {
    GTEST_SKIP() << "needs broken-images/ in STOKER_DATA";
  }
  EXPECT_GE(decode_all(folder), 225);
}

}  // namespace
}  // namespace stoker::data
