// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/report/curve_json.h"

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "stoker/base/fmt.h"

namespace stoker::io {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

Json json_number(std::optional<double> value) {
  if (!value) {
    return nullptr;
  }
  return std::isfinite(*value) ? Json(std::strtod(fmt::format("{:.6g}", *value).c_str(), nullptr)) : Json("nan");
}

Json curve_json(const Downsample& points, std::size_t column, const std::function<double(const RowBucket&)>& middle) {
  Json mean = Json::array(), lowest = Json::array(), highest = Json::array();
  bool several = false, any = false;
  for (const RowBucket& bucket : points.buckets()) {
    const ColumnBucket& values = bucket.columns[column];
    std::optional<double> value = values.mean();
    if (value && middle) {
      value = middle(bucket);
    }
    any |= value.has_value();
    several |= values.finite > 1;
    mean.push_back(json_number(value));
    lowest.push_back(values.finite > 0 ? json_number(values.lowest) : Json());
    highest.push_back(values.finite > 0 ? json_number(values.highest) : Json());
  }
  if (!any) {
    return nullptr;
  }
  Json json{{"mean", std::move(mean)}};
  if (several) {
    json["lo"] = std::move(lowest);
    json["hi"] = std::move(highest);
  }
  return json;
}

Json places_json(const Downsample& points) {
  Json first = Json::array(), last = Json::array(), time = Json::array();
  for (const RowBucket& bucket : points.buckets()) {
    first.push_back(bucket.first_step);
    last.push_back(bucket.last_step);
    time.push_back(json_number(bucket.time));
  }
  return {{"first", std::move(first)}, {"x", std::move(last)}, {"t", std::move(time)}};
}

}  // namespace stoker::io
