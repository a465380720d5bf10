// SPDX-License-Identifier: Apache-2.0
// The small images of an inspection's page: which ones, and their bytes as data URIs. Used by inspect_page().
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

// A row a class with some of its good images, spread over them; where there are many classes, of some classes, spread
// over all.
[[nodiscard]] std::vector<SheetRow> sheet_rows(const Inspection& found);

// Small images of these places as data URIs, in their order until `budget` characters are spent; those that cannot be
// read any more are left out. On as many threads as the inspection had.
[[nodiscard]] std::map<std::size_t, std::string> thumbnails(const Inspection& found,
                                                            const std::vector<std::size_t>& places, std::size_t budget);

}  // namespace stoker::study
