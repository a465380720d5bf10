// SPDX-License-Identifier: Apache-2.0
// Looks for the same file in training and in a split that judges it. Used by open_image_folder. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "stoker/data/folder/image_folder.h"

namespace stoker::data {

// Compares files by content (128-bit hash) and says for val and test how many are in train too. Reads everything once,
// so it does nothing for more than 20,000 samples or 256 MB: then it says that it did not look.
void find_same_files(const ImageFolder& folder, std::vector<std::string>& findings);

}  // namespace stoker::data
