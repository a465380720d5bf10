// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/report/monitor_log.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "stoker/base/json_fields.h"
#include "stoker/io/report/curve_json.h"
#include "stoker/io/report/monitor_charts.h"

namespace stoker::io {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostPoints = 240;   // per curve
constexpr std::size_t kMostColumns = 400;  // a machine with hundreds of kinds of threads
constexpr std::size_t kMostMarks = 200;
constexpr double kPause = 30;  // seconds without a record: the run was stopped in the meantime

}  // namespace

void MonitorLog::add(const Json& record) {
  const auto time = real_at(record, "time"), seconds = real_at(record, "seconds"), step = real_at(record, "step");
  const auto figures = record.find("figures");
  if (!time || !seconds || !step || *seconds < 0 || figures == record.end() || !figures->is_object()) {
    return;
  }
  const double gap = *time - last_;
  const double grown = rows_.empty() || gap < 0 || gap > *seconds + kPause ? *seconds : gap;
  Row row{(rows_.empty() ? 0 : rows_.back().time) + grown, static_cast<std::int64_t>(*step), {}};
  last_ = *time;
  for (const auto& [name, value] : figures->items()) {
    if (!value.is_number() || (columns_.size() >= kMostColumns && !columns_.contains(name))) {
      continue;
    }
    row.values.emplace_back(columns_.try_emplace(name, columns_.size()).first->second, value.get<double>());
  }
  rows_.push_back(std::move(row));
}

void MonitorLog::mark(const char* kind, std::int64_t step) {
  if (marks_.empty() || marks_.back().step != step || std::string_view(marks_.back().kind) != kind) {
    marks_.push_back({kind, step});
  }
}

// A mark is where the first record has its step.
Json MonitorLog::marks() const {
  Json all = Json::array();
  const std::size_t apart = marks_.size() / kMostMarks + 1;
  for (std::size_t i = 0; i < marks_.size(); i += apart) {
    const auto row = std::ranges::lower_bound(rows_, marks_[i].step, {}, &Row::step);
    if (row != rows_.end()) {
      all.push_back({{"kind", marks_[i].kind}, {"t", json_number(row->time)}, {"x", marks_[i].step}});
    }
  }
  return all;
}

Json MonitorLog::json() const {
  if (rows_.empty()) {
    return nullptr;
  }
  Downsample points(columns_.size(), kMostPoints);
  std::vector<double> sums(columns_.size());
  for (const Row& row : rows_) {
    std::vector<std::optional<double>> values(columns_.size());
    for (const auto& [column, value] : row.values) {
      values[column] = value;
      sums[column] += value;
    }
    points.add(row.step, row.time, values);
  }
  std::vector<std::string> names;
  for (const auto& [name, column] : columns_) {
    names.push_back(name);
  }
  Json charts = Json::array();
  for (const MonitorChart& chart :
       monitor_charts(names, [&](const std::string& name) { return sums[columns_.at(name)]; })) {
    Json lines = Json::array();
    for (const MonitorLine& line : chart.lines) {
      Json json = curve_json(points, columns_.at(line.figure));
      json["label"] = line.label;
      lines.push_back(std::move(json));
    }
    charts.push_back({{"title", chart.title}, {"unit", chart.unit}, {"lines", std::move(lines)}});
  }
  Json json = places_json(points);
  json.erase("first");
  json["charts"] = std::move(charts);
  json["marks"] = marks();
  return json;
}

}  // namespace stoker::io
