// SPDX-License-Identifier: Apache-2.0
// A tiny labelled data set as PNG files: three classes of 12 x 12 images that a network can tell apart by their
// stripes, so that training on it shows learning in seconds.
#pragma once

#include <string>

#include "support/images.h"
#include "support/temp_folder.h"

namespace stoker::testing {

// Writes <prefix><class>/<number>.png for `each` images per class; first shifts the numbers so that splits differ.
inline void write_striped_set(const TempFolder& folder, const std::string& prefix, int each, int first = 0,
                              int classes = 3) {
  static constexpr const char* kNames[] = {"across", "down", "plain"};
  for (int label = 0; label < classes; ++label) {
    for (int number = first; number < first + each; ++number) {
      augment::Image image;
      image.reshape(12, 12, 3);
      std::uint8_t* out = image.pixels.data();
      for (int y = 0; y < 12; ++y) {
        for (int x = 0; x < 12; ++x) {
          const int along = label == 0 ? y : label == 1 ? x : 0;
          for (int c = 0; c < 3; ++c) {
            const int noise = (x * 31 + y * 17 + c * 7 + number * 13) % 40;
            *out++ = static_cast<std::uint8_t>((along + number) % 4 < 2 ? 40 + noise : 180 + noise);
          }
        }
      }
      folder.write(prefix + kNames[label] + "/" + std::to_string(number) + ".png", png_of(image));
    }
  }
}

}  // namespace stoker::testing
