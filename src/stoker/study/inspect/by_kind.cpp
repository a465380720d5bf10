// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/inspect/by_kind.h"

#include <algorithm>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/study/inspect/table.h"
#include "stoker/study/inspect/texts.h"
#include "stoker/tasks/registry.h"
#include "stoker/train/options.h"

namespace stoker::study {
namespace {

constexpr std::string_view kWhere = "study.inspect";

core::TaskValues table_values(const std::vector<std::string>& words) {
  train::Options options(tasks::task_kind("tabular").info().options);
  for (const std::string& word : words) {
    options.set_assignment(word);
  }
  for (const auto& [key, asked] : options.all()) {
    if (key != "target" && key != "sep" && key != "header" && key != "leave_out" && key != "regression") {
      fail<ConfigError>(kWhere, "{} is unknown here; a table takes target, sep, header, leave_out and regression", key);
    }
  }
  return options.own_values();
}

}  // namespace

std::optional<DataSheet> inspect_by_kind(const std::filesystem::path& path, const std::vector<std::string>& words) {
  std::error_code unknown;
  const std::string kind = std::filesystem::exists(path, unknown) ? tasks::recognise_task(path).name() : "";
  if (kind == "tabular") {
    return inspect_table(path, table_values(words));
  }
  if (!words.empty()) {
    fail<ConfigError>(kWhere, "{} applies to tables only, and {} is not a table; leave it out",
                      printable(words.front()), printable(path.native()));
  }
  return kind == "language_model" ? std::optional(inspect_texts(path)) : std::nullopt;
}

}  // namespace stoker::study
