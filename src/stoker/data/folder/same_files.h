// SPDX-License-Identifier: Apache-2.0
// Finds files that are both in train and in val or test. Used by open_image_folder. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "stoker/data/folder/image_folder.h"

namespace stoker::data {

// Compares files by content (128-bit hash) and reports how many files of val and test are also in train. It reads
// everything once. With more than 20,000 samples or 256 MB it does not check, and a finding says so.
void find_same_files(const ImageFolder& folder, std::vector<std::string>& findings);

}  // namespace stoker::data
