// SPDX-License-Identifier: Apache-2.0
// Every operation differs by at most one grey level from torchvision's with the same parameters
// (tests/golden/make_augment.py). Results of several operations in sequence are not compared, because a later operation
// may amplify the difference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "stoker/augment/operation.h"
#include "support/images.h"

namespace stoker::augment {
namespace {

constexpr int kWidth = 17, kHeight = 15;

void apply(const std::string& name, std::istream& values, Pixels pixels) {
  PixelScratch scratch;
  const auto next = [&] {
    double value = NAN;
    values >> value;
    return value;
  };
  const auto adjust = [&](Adjust what) { execute(ColourDraw{{colour_step(what, next())}, 1}, pixels); };
  if (name == "brightness") {
    adjust(Adjust::kBrightness);
  } else if (name == "contrast") {
    adjust(Adjust::kContrast);
  } else if (name == "saturation") {
    adjust(Adjust::kSaturation);
  } else if (name == "hue") {
    adjust(Adjust::kHue);
  } else if (name == "grey") {
    execute(GreyDraw{}, pixels);
  } else if (name == "blur") {
    const int kernel = static_cast<int>(next());
    execute(blur_draw(kernel, next()), pixels, scratch);
  } else if (name == "affine") {
    const double angle = next(), x = next(), y = next(), scale = next(), shear_x = next(), shear_y = next();
    execute(affine_draw({angle, x, y, scale, shear_x, shear_y}, kWidth, kHeight, {}), pixels, scratch);
  } else {
    FAIL() << "unknown operation " << name;
  }
}

TEST(OperationGolden, AtMostOneGreyLevelFromTorchvision) {
  std::ifstream file(testing::source_folder() / "tests/golden/augment.tsv");
  int cases = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) {
      continue;
    }
    const std::size_t bar = line.find('|');
    ASSERT_NE(bar, std::string::npos);
    const std::string hex = line.substr(bar + 2);
    std::istringstream in(line.substr(0, bar));
    std::string name;
    int channels = 0;
    in >> name >> channels;
    SCOPED_TRACE(line.substr(0, bar));
    Image image = testing::computed_image(kWidth, kHeight, channels);
    ASSERT_EQ(hex.size(), 2 * image.pixels.size());
    apply(name, in, {image.pixels.data(), kWidth, kHeight, channels});
    int most = 0, differ = 0;
    for (std::size_t i = 0; i < image.pixels.size(); ++i) {
      const int theirs = std::stoi(hex.substr(2 * i, 2), nullptr, 16);
      const int apart = std::abs(image.pixels[i] - theirs);
      most = std::max(most, apart);
      differ += apart > 0;
    }
    EXPECT_LE(most, 1);
    EXPECT_LE(differ,
              0.25 * static_cast<double>(image.pixels.size()));  // one level everywhere would mean wrong rounding
    ++cases;
  }
  EXPECT_EQ(cases, 64);
}

}  // namespace
}  // namespace stoker::augment
