// SPDX-License-Identifier: Apache-2.0
// A thousand image files, enough for a list of rows in the cache, which are links to two JPEGs of different content.
// For one thread.
#pragma once

#include <filesystem>
#include <string>

#include "stoker/data/decode/jpeg_encode.h"
#include "support/images.h"
#include "support/temp_folder.h"

namespace stoker::testing {

// classes: one/0.jpg ... one/499.jpg, two/...
inline void write_many_photographs(const TempFolder& folder) {
  for (const int number : {0, 1}) {
    const std::filesystem::path name = number == 0 ? "one" : "two";
    const auto bytes = data::encode_jpeg(computed_image(200, 160 + number, 3, 50 * number).view(), 95);
    folder.write(name / "0.jpg", as_text(bytes));
    for (int link = 1; link < 500; ++link) {
      std::filesystem::create_hard_link(folder / name / "0.jpg", folder / name / (std::to_string(link) + ".jpg"));
    }
  }
}

}  // namespace stoker::testing
