// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "stoker/base/file.h"
#include "stoker/io/report/page_frame.h"
#include "stoker/study/inspect/report.h"
#include "stoker/study/inspect/sheet.h"
#include "stoker/study/page_files.h"

namespace stoker::study {
namespace {

constexpr std::size_t kListed = 100;                                           // names of images per finding
constexpr std::size_t kShownGroups = 6, kShownOfGroup = 4, kShownImages = 10;  // thumbnails per finding
constexpr std::size_t kImageBudget = 1'700'000;                                // characters

// Images of findings come first: they matter more than the contact sheet.
std::vector<std::size_t> shown_places(const InspectReport& report, const std::vector<SheetRow>& rows) {
  std::vector<std::size_t> places;
  std::set<std::size_t> seen;
  const auto add = [&](std::size_t place) {
    if (!report.found.bad.contains(place) && seen.insert(place).second) {
      places.push_back(place);
    }
  };
  for (const DataFinding& finding : report.findings) {
    for (std::size_t i = 0; i < std::min(kShownImages, finding.images.size()); ++i) {
      add(finding.images[i]);
    }
    for (std::size_t i = 0; i < std::min(kShownGroups, finding.groups.size()); ++i) {
      std::for_each_n(finding.groups[i].begin(), std::min(kShownOfGroup, finding.groups[i].size()), add);
    }
  }
  std::size_t longest = 0;
  for (const SheetRow& row : rows) {
    longest = std::max(longest, row.places.size());
  }
  for (std::size_t column = 0; column < longest; ++column) {  // equal numbers for all classes at the end
    for (const SheetRow& row : rows) {
      if (column < row.places.size()) {
        add(row.places[column]);
      }
    }
  }
  return places;
}

}  // namespace

std::string inspect_page(const InspectReport& report) {
  using namespace page_files;
  const Inspection& found = report.found;
  const std::vector<SheetRow> rows = sheet_rows(found);
  nlohmann::ordered_json data = inspect_members(report, kListed);
  data["thumbnails"] = nlohmann::ordered_json::object();
  for (auto& [place, uri] : thumbnails(found, shown_places(report, rows), kImageBudget)) {
    data["thumbnails"][std::to_string(place)] = uri;
  }
  data["shown"] = {{"groups", kShownGroups}, {"of_group", kShownOfGroup}, {"images", kShownImages}};
  data["sheet"] = nlohmann::ordered_json::array();
  for (const SheetRow& row : rows) {
    nlohmann::ordered_json images = nlohmann::ordered_json::array();
    for (const std::size_t place : row.places) {
      images.push_back({{"id", place}, {"file", found.name(place)}});
    }
    data["sheet"].push_back({{"class", row.label}, {"images", images}});
  }
  const std::string path = printable(found.path.native());
  const std::string verdict = inspect_verdict(report) + ".";
  return io::make_page({.title = path,
                        .kind = "inspect",
                        .verdict = verdict,
                        .style = kInspectCss,
                        .body = kInspectSections,
                        .scripts = {kInspectPartsJs, kInspectJs}},
                       data);
}

}  // namespace stoker::study
