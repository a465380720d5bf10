// SPDX-License-Identifier: Apache-2.0
// Tables for predictions: the columns that a model was trained on, in files of rows. Used by the tabular task's kind.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "stoker/tasks/task.h"

namespace stoker::tasks {

// The rows of all files, in order. The target and columns that training did not use may be missing; categories not seen
// in training are findings and count as missing. DataError for a file that is not a table, lacks a column, or has text
// where training had numbers.
[[nodiscard]] std::unique_ptr<UnlabelledSource> unlabelled_tables(const nlohmann::json& card,
                                                                  const std::vector<std::filesystem::path>& files);

}  // namespace stoker::tasks
