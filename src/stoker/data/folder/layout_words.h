// SPDX-License-Identifier: Apache-2.0
// The meaning of folder and file names in a data set: image, mask, split, or something else, such as a class. Used by
// the recognisers of foreign layouts. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>

namespace stoker::data {

// A path without words for images and masks: "val/images/7.jpg" and "val/masks/7_mask.png" have the same key.
struct ImageRole {
  std::string key;
  bool mask = false;  // true if a folder or the end of the file name marks a mask
};
[[nodiscard]] ImageRole role_of(std::string_view path);

// The path of a folder in lower case without words for images, masks, splits and years; the rest may be a class.
[[nodiscard]] std::string folder_without_words(std::string_view folder);

// "a/b/7.jpg": "7" and "a/b"; "" without a folder.
[[nodiscard]] std::string_view stem_of(std::string_view path);
[[nodiscard]] std::string_view folder_of(std::string_view path);

}  // namespace stoker::data
