// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/cell_json.h"

#include <nlohmann/json.hpp>

#include "stoker/base/file.h"

namespace stoker::job {

nlohmann::json cell_json(const tasks::Table::Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) {
    return printable(*text);
  }
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) {
    return *whole;
  }
  return std::get<double>(cell);  // dump() writes what is not finite as null
}

}  // namespace stoker::job
