// SPDX-License-Identifier: Apache-2.0
// What an inspection of a table or of texts found, in parts that a terminal, a program and a page show alike: findings,
// tables of figures, distributions. Made by inspect_table() and inspect_texts(). Thread-safe: a value.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "stoker/study/inspect/figures.h"
#include "stoker/study/inspect/findings.h"
#include "stoker/tasks/network_trainable.h"

namespace stoker::study {

struct DataSheet {
  std::filesystem::path path;
  std::string kind;       // "table", "text"
  std::string looked_at;  // "891 rows", for the verdict
  double seconds = 0;
  std::vector<std::pair<std::string, std::int64_t>> counts;  // "rows", 891: the first things to know
  std::vector<DataFinding> findings;                         // worst first; about no images
  std::vector<tasks::Table> tables;                          // of the columns, of the files, ...
  struct Plot {
    std::string of;  // the column's name, or what is counted
    Distribution values;
  };
  std::vector<Plot> plots;
};

// Lines of at most 100 columns, but for long names; long tables are cut.
[[nodiscard]] std::string sheet_text(const DataSheet& sheet);
// docs/formats.md.
[[nodiscard]] std::string sheet_json(const DataSheet& sheet);
// A page that needs nothing else.
[[nodiscard]] std::string sheet_page(const DataSheet& sheet);

}  // namespace stoker::study
