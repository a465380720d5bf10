// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/inspect/data_sheet.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/file.h"
#include "stoker/base/thousands.h"
#include "stoker/base/utc.h"
#include "stoker/base/version.h"
#include "stoker/io/report/page_frame.h"
#include "stoker/job/table_text.h"
#include "stoker/study/inspect/parts.h"
#include "stoker/study/page_files.h"

namespace stoker::study {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t kShownRows = 60;  // rows of a table on a terminal

std::string spaced(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

Json members_of(const DataSheet& sheet) {
  Json counts = Json::object(), findings = Json::array(), tables = Json::object(), plots = Json::array();
  for (const auto& [name, count] : sheet.counts) {
    counts[name] = count;
  }
  for (const DataFinding& finding : sheet.findings) {
    findings.push_back(finding_members(finding));
  }
  for (const tasks::Table& table : sheet.tables) {
    tables[table.name] = job::table_json(table);
  }
  for (const DataSheet::Plot& plot : sheet.plots) {
    plots.push_back(distribution_json(plot.values));
    plots.back()["of"] = printable(plot.of);
  }
  return {{"format", 1},
          {"stoker", kVersion},
          {"date", utc_now("%Y-%m-%dT%H:%M:%SZ")},
          {"path", printable(sheet.path.native())},
          {"kind", sheet.kind},
          {"seconds", sheet.seconds},
          {"counts", counts},
          {"findings", findings},
          {"tables", tables},
          {"distributions", plots}};
}

}  // namespace

std::string sheet_text(const DataSheet& sheet) {
  std::string counts;
  for (const auto& [name, count] : sheet.counts) {
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", spaced(name), thousands(count));
  }
  std::string text = wrapped("",
                             fmt::format("{}: {}, {}; inspected in {:.1f} s", printable(sheet.path.native()),
                                         sheet.kind, counts, sheet.seconds),
                             0);
  text += verdict_of(sheet.findings, sheet.looked_at) + ".\n" + findings_text(sheet.findings);
  for (const tasks::Table& table : sheet.tables) {
    tasks::Table shown = table;
    shown.rows.resize(std::min(kShownRows, table.rows.size()));
    text += "\n" + job::table_text(shown);
    if (shown.rows.size() < table.rows.size()) {
      text += fmt::format("  and {} more\n", table.rows.size() - shown.rows.size());
    }
  }
  return text;
}

std::string sheet_json(const DataSheet& sheet) { return members_of(sheet).dump(1) + "\n"; }

std::string sheet_page(const DataSheet& sheet) {
  using namespace page_files;
  const std::string path = printable(sheet.path.native());
  const std::string verdict = verdict_of(sheet.findings, sheet.looked_at) + ".";
  return io::make_page({.title = path,
                        .kind = "inspect",
                        .verdict = verdict,
                        .style = kInspectCss,
                        .body = kSheetSections,
                        .scripts = {kInspectPartsJs, kSheetJs}},
                       members_of(sheet));
}

}  // namespace stoker::study
