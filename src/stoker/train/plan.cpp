// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "stoker/base/byte_name.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/train/plan_options.h"

namespace stoker::train {
namespace {

constexpr std::string_view kWhere = "train.plan";
constexpr int kFormat = 2;
// Added since the format: a plan without them ran with their defaults.
constexpr std::array<std::string_view, 16> kNewer = {"microbatch_schedule",
                                                     "memory_limit",
                                                     "recompute",
                                                     "freeze_norm",
                                                     "optimizer_in_backward",
                                                     "monitor",
                                                     "log",
                                                     "profile",
                                                     "apply",
                                                     "ranks",
                                                     "rank_timeout",
                                                     "shard",
                                                     "rank_gradients",
                                                     "sync_bn",
                                                     "pipeline",
                                                     "pipeline_cut"};

core::Origin origin_from_name(const std::string& name) {
  using core::Origin;
  for (const Origin origin : {Origin::kDefault, Origin::kConfig, Origin::kCommandLine, Origin::kPlanFile,
                              Origin::kMeasured, Origin::kAdvice}) {
    if (core::origin_name(origin) == name) {
      return origin;
    }
  }
  fail<ConfigError>(kWhere, "unknown origin \"{}\"", printable(name));
}

}  // namespace

double Plan::peak_lr() const {
  const double ratio = static_cast<double>(batch) / static_cast<double>(lr_batch);
  return lr_scale == "linear" ? lr * ratio : lr_scale == "sqrt" ? lr * std::sqrt(ratio) : lr;
}

std::vector<core::PlanRow> Plan::rows() const {
  std::vector<core::PlanRow> result;
  const auto add = [&](std::string key, std::string value) {
    const auto note = notes.find(key);
    const Note known = note == notes.end() ? Note{} : note->second;
    result.push_back({std::move(key), std::move(value), known.origin, known.reason});
  };
  for (const core::Option& each : plan_options().options()) {
    add(each.key, plan_options().text(*this, each.key));
  }
  for (const auto& [key, value] : own) {
    add(key, value);
  }
  return result;
}

std::string plan_to_json(const Plan& plan) {
  nlohmann::ordered_json document = {{"format", kFormat}, {"plan", nlohmann::ordered_json::object()}};
  for (const core::PlanRow& row : plan.rows()) {
    document["plan"][row.key] = {{"value", byte_name_to_text(row.value)},
                                 {"origin", core::origin_name(row.origin)},
                                 {"reason", printable(row.reason)}};
  }
  return document.dump(2) + "\n";
}

Plan plan_from_json(const std::string& text) {
  try {
    const auto document = nlohmann::json::parse(text);
    if (const int format = document.at("format").get<int>(); format != kFormat) {
      fail<ConfigError>(kWhere, "plan format {} is not supported, expected {}; {}", format, kFormat,
                        format == 1 ? "Stoker 0.1 reads it" : "a newer Stoker wrote it");
    }
    Plan plan;
    const auto& rows = document.at("plan");
    for (const auto& [key, row] : rows.items()) {
      const std::optional<std::string> value = byte_name_from_text(row.at("value").get<std::string>());
      if (!value) {
        fail<ConfigError>(kWhere, "{} must have hexadecimal digits after hex:", key);
      }
      set_value(plan, key, *value);
      plan.notes[key] = {origin_from_name(row.at("origin").get<std::string>()), row.at("reason").get<std::string>()};
    }
    for (const core::Option& each : plan_options().options()) {
      if (rows.contains(each.key)) {
        continue;
      }
      if (std::ranges::find(kNewer, each.key) != kNewer.end()) {
        set_value(plan, each.key, each.fallback.value.value());
        plan.notes[each.key] = {core::Origin::kDefault, each.fallback.reason};
      } else {
        fail<ConfigError>(kWhere, "the plan lacks \"{}\"", each.key);
      }
    }
    return plan;
  } catch (const nlohmann::json::exception& error) {
    fail<ConfigError>(kWhere, "the file is not a plan: {}", error.what());
  }
}

}  // namespace stoker::train
