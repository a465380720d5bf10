// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/report/run_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "stoker/base/fmt.h"
#include "stoker/base/shell_word.h"
#include "stoker/io/report/curve_json.h"

namespace stoker::io {
namespace {

using Json = nlohmann::ordered_json;

Json step_curves(const MetricsTable& metrics) {
  Json json = places_json(metrics.steps);
  Json curves = Json::array();
  const auto add = [&](const std::string& name, const char* kind, std::size_t column,
                       const std::function<double(const RowBucket&)>& middle = {}) {
    if (metrics.steps.buckets().empty()) {
      return;
    }
    if (Json each = curve_json(metrics.steps, column, middle); !each.is_null()) {
      each["name"] = name;
      each["kind"] = kind;
      curves.push_back(std::move(each));
    }
  };
  for (std::size_t i = 0; i < metrics.scalars.size(); ++i) {
    add(metrics.scalars[i], "scalar", MetricsTable::kFirstScalar + i);
  }
  add("learning rate", "lr", MetricsTable::kLr);
  add("samples per second", "throughput", MetricsTable::kThroughput, [](const RowBucket& bucket) {
    return bucket.columns[MetricsTable::kSamples].sum / bucket.columns[MetricsTable::kSeconds].sum;
  });
  add("seconds", "seconds", MetricsTable::kSeconds);
  add("data_wait", "data_wait", MetricsTable::kDataWait);
  add("memory", "memory", MetricsTable::kMemory);
  json["curves"] = std::move(curves);
  return json;
}

Json evaluated_curves(const MetricsTable& metrics) {
  Json all = Json::array();
  for (const EvaluatedSeries& series : metrics.evaluated) {
    Json json = places_json(series.points);
    json.erase("first");
    if (Json values = curve_json(series.points, 0); !values.is_null()) {
      json.update(values);
      json["split"] = series.split;
      json["metric"] = series.metric;
      all.push_back(std::move(json));
    }
  }
  return all;
}

Json occurrences_json(const Occurrences& all) {
  Json first = Json::array();
  for (const StepAndText& each : all.first) {
    first.push_back({each.step, each.text});
  }
  return {{"count", all.count}, {"first", std::move(first)}};
}

// A path that no program takes for an option.
std::string path_word(const std::string& path) { return shell_word(path.starts_with('-') ? "./" + path : path); }

// The value of the plan for a key; empty: none.
std::string planned(const RunLog& log, std::string_view key) {
  const auto found = std::ranges::find(log.plan, key, &PlanText::key);
  return found == log.plan.end() ? "" : found->value;
}

// Whether a program added this kind of task (tasks::add_task); the command line knows only the built-in kinds.
bool made_by_program(const std::string& task) {
  constexpr std::array<std::string_view, 3> kBuiltIn = {"image_classification", "language_model", "tabular"};
  return !task.empty() && std::ranges::find(kBuiltIn, task) == kBuiltIn.end();
}

// What can be done next, each a command and what it gives; an empty command is only a remark.
Json commands(const ReportedRun& run) {
  const RunLog& log = run.log;
  const std::string path = path_word(log.path);
  const std::string task = log.checkpoints.empty() ? planned(log, "task") : log.checkpoints.front().task;
  const bool resumable = run.verdict.state != RunState::kFinished && run.verdict.state != RunState::kRunning;
  Json list = Json::array();
  const auto add = [&](const std::string& command, const std::string& what) { list.push_back({command, what}); };
  if (made_by_program(task)) {
    add("", log.checkpoints.empty() ? "start again with the program that made it: there is no checkpoint"
                                    : "resume and evaluate it with the program that made it");
    add("stoker report " + path + " OTHER_RUN", "compare with another run");
    return list;
  }
  if (log.checkpoints.empty()) {
    add("stoker train --config " + path_word(log.path + "/config.toml"), "start again: there is no checkpoint");
    return list;
  }
  if (resumable) {
    add("stoker resume " + path, "continue from the last checkpoint, at the exact step");
  }
  const bool writes = task == "language_model", numbers = planned(log, "regression") == "on";
  add("stoker eval " + path,
      fmt::format("metrics{}{}", log.test ? " on the test split" : "", writes || numbers ? "" : ", also per class"));
  if (writes) {
    add("stoker generate " + path + " --prompt \"...\"", "generate text that continues a prompt");
  } else {
    add("stoker predict " + path + (task == "image_classification" ? " IMAGE" : " FILE"),
        numbers ? "a number for each row" : "classes and probabilities");
  }
  add("stoker export " + path + " w.safetensors", "weights for Python");
  add("stoker report " + path + " OTHER_RUN", "compare with another run");
  return list;
}

Json plan_json(const std::vector<PlanText>& plan) {
  Json rows = Json::array();
  for (const PlanText& row : plan) {
    rows.push_back({{"key", row.key}, {"value", row.value}, {"origin", row.origin}, {"reason", row.reason}});
  }
  return rows;
}

}  // namespace

nlohmann::ordered_json run_json(const ReportedRun& run) {
  const RunLog& log = run.log;
  Json tiles = Json::array();
  for (const Tile& tile : run.verdict.tiles) {
    tiles.push_back({tile.label, tile.value, tile.note});
  }
  Json checkpoints = Json::array();
  for (const CheckpointLog& each : log.checkpoints) {
    checkpoints.push_back({each.step, each.name});
  }
  Json machine = Json::array();
  for (const auto& [key, value] : log.machine) {
    machine.push_back({key, value});
  }
  return {{"name", log.name},
          {"path", log.path},
          {"title", log.title},
          {"state", state_name(run.verdict.state)},
          {"reached", run.verdict.reached},
          {"end", run.verdict.end},
          {"verdict", run.verdict.text()},
          {"tiles", std::move(tiles)},
          {"last_step", log.last_step},
          {"steps", step_curves(run.metrics)},
          {"evaluated", evaluated_curves(run.metrics)},
          {"not_finite", occurrences_json(run.metrics.not_finite)},
          {"skipped", occurrences_json(run.metrics.skipped)},
          {"faults", occurrences_json(log.faults)},
          {"better", occurrences_json(log.better)},
          {"checkpoints", std::move(checkpoints)},
          {"resumed_at", log.resumed_at},
          {"anatomy", log.anatomy.json()},
          {"ranks", log.ranks.json()},
          {"findings", log.findings},
          {"plan", plan_json(log.plan)},
          {"machine", std::move(machine)},
          {"commands", commands(run)},
          {"unread", log.unread}};
}

nlohmann::ordered_json plan_differences(const std::vector<ReportedRun>& runs) {
  std::vector<std::string> keys;
  std::set<std::string> seen;
  for (const ReportedRun& run : runs) {
    for (const PlanText& row : run.log.plan) {
      if (seen.insert(row.key).second) {
        keys.push_back(row.key);
      }
    }
  }
  Json result = Json::array();
  for (const std::string& key : keys) {
    Json values = Json::array();
    for (const ReportedRun& run : runs) {
      const auto found = std::ranges::find(run.log.plan, key, &PlanText::key);
      values.push_back(found == run.log.plan.end() ? Json() : Json(found->value));
    }
    if (std::ranges::any_of(values, [&](const Json& each) { return each != values.front(); })) {
      result.push_back({{"key", key}, {"values", std::move(values)}});
    }
  }
  return result;
}

}  // namespace stoker::io
