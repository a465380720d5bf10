// SPDX-License-Identifier: Apache-2.0
// Tables to predict from: the columns that a model learnt from, in files of rows. Used by the tabular task's kind.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "stoker/tasks/task.h"

namespace stoker::tasks {

// The rows of all files, in order. The target and columns that training left out need not be there; categories that
// training has not seen are findings and count as missing. DataError for a file that is no table, or lacks a column, or
// holds text where training had numbers.
[[nodiscard]] std::unique_ptr<UnlabelledSource> unlabelled_tables(const nlohmann::json& card,
                                                                  const std::vector<std::filesystem::path>& files);

}  // namespace stoker::tasks
