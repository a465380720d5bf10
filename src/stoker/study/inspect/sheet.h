// SPDX-License-Identifier: Apache-2.0
// The thumbnails of an inspection's page: which images, and their bytes as data URIs. Used by inspect_page().
// Thread-safe: no state.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "stoker/study/inspect/findings.h"

namespace stoker::study {

struct SheetRow {
  std::size_t label = 0;
  std::vector<std::size_t> places;
};

// One row per class with some of its good images, spread evenly. If there are many classes, some classes, spread
// evenly.
[[nodiscard]] std::vector<SheetRow> sheet_rows(const Inspection& found);

// Thumbnails of these places as data URIs, in order, until `budget` characters are used. Images that can no longer be
// read are left out. Uses as many threads as the inspection.
[[nodiscard]] std::map<std::size_t, std::string> thumbnails(const Inspection& found,
                                                            const std::vector<std::size_t>& places, std::size_t budget);

}  // namespace stoker::study
