// SPDX-License-Identifier: Apache-2.0
// A table before there is a plan, and what both of its phases share: its rows, and the split of each row. Used by the
// kind of task.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "stoker/data/table/table.h"
#include "stoker/tasks/task.h"

namespace stoker::tasks {

// The rows of a split, and their file.
struct SplitRows {
  std::vector<std::int64_t> rows;
  bool test_file = false;
};

struct TableFiles {
  std::filesystem::path path;
  data::TableData table, test_table;  // test_table: without rows if test= is not set
  SplitRows train, val, test;
  std::string target;  // empty: not set
  std::vector<std::string> findings;

  [[nodiscard]] const SplitRows& of(Split split) const {
    return split == Split::kTrain ? train : split == Split::kVal ? val : test;
  }
  [[nodiscard]] std::string describe() const;
  [[nodiscard]] std::string details() const;
};

// The part of a phase that depends on the files.
template <typename Phase>
class WithTable : public Phase {
 public:
  explicit WithTable(TableFiles files) : files_(std::move(files)) {}
  [[nodiscard]] std::int64_t size(Split split) const final {
    return static_cast<std::int64_t>(files_.of(split).rows.size());
  }
  [[nodiscard]] std::string describe() const final { return files_.describe(); }
  [[nodiscard]] std::string details() const final { return files_.details(); }
  [[nodiscard]] const std::vector<std::string>& findings() const final { return files_.findings; }

 protected:
  TableFiles files_;
};

// DataError if it is not a table.
[[nodiscard]] std::unique_ptr<OpenData> open_table(const std::filesystem::path& path, const OpenOptions& options);

}  // namespace stoker::tasks
