// SPDX-License-Identifier: Apache-2.0
// What the names of folders and files say of an image's part in a data set: an image, a mask of one, a split, or
// something else, such as a class. Used by the recognisers of foreign layouts. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>

namespace stoker::data {

// A path without the words that tell images from masks: "val/images/7.jpg" and "val/masks/7_mask.png" have one key.
struct ImageRole {
  std::string key;
  bool mask = false;  // a folder or the end of the name says that it is a mask
};
[[nodiscard]] ImageRole role_of(std::string_view path);

// A folder's path in small letters without words for images, masks, splits and years: what is left may be a class.
[[nodiscard]] std::string folder_without_words(std::string_view folder);

// "a/b/7.jpg": "7" and "a/b". Without a folder that is "".
[[nodiscard]] std::string_view stem_of(std::string_view path);
[[nodiscard]] std::string_view folder_of(std::string_view path);

}  // namespace stoker::data
