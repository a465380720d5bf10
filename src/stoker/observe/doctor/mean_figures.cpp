// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/doctor/mean_figures.h"

#include <nlohmann/json.hpp>

#include "stoker/base/json_fields.h"

namespace stoker::observe::doctor {

void MeanFigures::add(const nlohmann::json& record) {
  const double seconds = real_at(record, "seconds").value_or(0);
  const auto figures = record.find("figures");
  if (seconds <= 0 || figures == record.end() || !figures->is_object() || !started_) {
    started_ = true;
    return;
  }
  for (const auto& [name, value] : figures->items()) {
    if (value.is_number()) {
      Mean& mean = means_[name];
      mean.sum += value.get<double>() * seconds;
      mean.seconds += seconds;
    }
  }
}

void MeanFigures::put_into(Facts& facts) const {
  for (const auto& [name, mean] : means_) {
    facts.figures[name] = {mean.sum / mean.seconds, "monitor"};
  }
}

}  // namespace stoker::observe::doctor
