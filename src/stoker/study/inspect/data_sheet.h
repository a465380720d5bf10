// SPDX-License-Identifier: Apache-2.0
// The result of inspecting a table or texts, in parts that the terminal, the JSON and the page share: findings, tables,
// distributions. Made by inspect_table() and inspect_texts(). Thread-safe: a value.
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
  std::vector<std::pair<std::string, std::int64_t>> counts;  // "rows", 891: shown first
  std::vector<DataFinding> findings;                         // worst first; without images
  std::vector<tasks::Table> tables;                          // columns, files, ...
  struct Plot {
    std::string of;  // name of the column, or what is counted
    Distribution values;
  };
  std::vector<Plot> plots;
};

// Lines of at most 100 columns, except for long names; long tables are shortened.
[[nodiscard]] std::string sheet_text(const DataSheet& sheet);
// docs/formats.md.
[[nodiscard]] std::string sheet_json(const DataSheet& sheet);
// A self-contained page.
[[nodiscard]] std::string sheet_page(const DataSheet& sheet);

}  // namespace stoker::study
