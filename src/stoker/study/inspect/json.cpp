// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/byte_name.h"
#include "stoker/base/file.h"
#include "stoker/study/inspect/parts.h"
#include "stoker/study/inspect/report.h"

namespace stoker::study {
namespace {

using Json = nlohmann::ordered_json;

Json reference(const Inspection& found, std::size_t place, bool with_id) {
  const InspectedImage& image = found.images[place];
  const data::ImageSplit& split = found.split(image.split);
  Json json{{"split", split.name},
            {"class", printable(found.folder.classes[static_cast<std::size_t>(image.label)])},
            {"file", found.name(place)}};
  const std::string_view key = split.source->key(image.index);
  if (const std::string text = byte_name_to_text(key); text != key) {
    json["key"] = text;
  }
  json["bytes"] = image.bytes;
  if (const auto bad = found.bad.find(place); bad != found.bad.end()) {
    json["reason"] = printable(bad->second);
  } else {
    json["width"] = image.facts.width;
    json["height"] = image.facts.height;
  }
  if (with_id) {
    json["id"] = place;
  }
  return json;
}

Json finding_json(const Inspection& found, const DataFinding& finding, std::size_t most) {
  const bool with_id = most != kAllOfThem;
  const auto list = [&](const std::vector<std::size_t>& places) {
    Json references = Json::array();
    for (std::size_t i = 0; i < std::min(places.size(), most); ++i) {
      references.push_back(reference(found, places[i], with_id));
    }
    return references;
  };
  Json json = finding_members(finding);
  if (!finding.images.empty()) {
    json["images"] = list(finding.images);
  }
  if (!finding.groups.empty()) {
    if (with_id) {  // for the page, which shows a few; the JSON report has them all
      json["all_groups"] = finding.groups.size() <= most &&
                           std::ranges::all_of(finding.groups, [&](const auto& group) { return group.size() <= most; });
    }
    json["groups"] = Json::array();
    for (std::size_t i = 0; i < std::min(finding.groups.size(), most); ++i) {
      json["groups"].push_back(list(finding.groups[i]));
    }
  }
  return json;
}

Json channels_json(const InspectReport& report) {
  const auto channels = report.figures.mean.size();
  const PixelSums& sums = report.found.sums;
  Json sum = Json::array(), squares = Json::array();
  for (std::size_t c = 0; c < channels; ++c) {
    sum.push_back(sums.sum[c]);
    squares.push_back(sums.squares[c]);
  }
  return {{"pixels", sums.pixels},
          {"sum", sum},
          {"squares", squares},
          {"mean", report.figures.mean},
          {"std", report.figures.deviation}};
}

Json splits_json(const InspectFigures& figures) {
  Json splits = Json::array();
  for (const SplitCount& split : figures.splits) {
    splits.push_back({{"name", split.name},
                      {"images", split.images},
                      {"looked", split.looked},
                      {"bad", split.bad},
                      {"by_class", split.by_class}});
  }
  return splits;
}

}  // namespace

Json inspect_members(const InspectReport& report, std::size_t most) {
  const Inspection& found = report.found;
  const InspectFigures& figures = report.figures;
  Json classes = Json::array(), orientations = Json::object(), findings = Json::array();
  for (const std::string& name : found.folder.classes) {
    classes.push_back(printable(name));
  }
  for (const auto& [orientation, count] : figures.orientations) {
    orientations[std::to_string(orientation)] = count;
  }
  for (const DataFinding& finding : report.findings) {
    findings.push_back(finding_json(found, finding, most));
  }
  return {{"format", 1},
          {"stoker", report.stoker},
          {"date", report.date},
          {"path", printable(found.path.native())},
          {"layout", found.folder.layout},
          {"images", found.total},
          {"looked", found.images.size()},
          {"bad", found.bad.size()},
          {"stopped", found.stopped},
          {"seconds", found.seconds},
          {"threads", found.threads},
          {"findings", findings},
          {"classes", classes},
          {"splits", splits_json(figures)},
          {"formats", figures.formats},
          {"modes", figures.modes},
          {"orientations", orientations},
          {"bytes", figures.bytes},
          {"channels", channels_json(report)},
          {"width", distribution_json(figures.width)},
          {"height", distribution_json(figures.height)},
          {"aspect", distribution_json(figures.aspect)},
          {"file_bytes", distribution_json(figures.file_bytes)}};
}

std::string inspect_json(const InspectReport& report) { return inspect_members(report).dump(1) + "\n"; }

}  // namespace stoker::study
