// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/event_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"

namespace stoker::io {
namespace {

using Json = nlohmann::ordered_json;
using namespace core;

// Shortest text that reads back the same value: as a float if the value is one.
template <typename Real>
Json number(Real value) {
  if (std::isnan(value)) {
    return "nan";
  }
  if (std::isinf(value)) {
    return value > 0 ? "inf" : "-inf";
  }
  return Json::parse(fmt::format("{}", value));  // 0.1f as 0.1, not as 0.10000000149011612
}

Json text(const std::string& value) { return printable(value); }  // JSON is UTF-8; file names may not be

Json begin(const char* kind, const Position& position, std::int64_t step) {
  return {{"event", kind}, {"epoch", position.epoch}, {"step", step}};
}

Json to_json(const RunStarted& event, const std::vector<std::string>& scalars) {
  Json plan = Json::array();
  for (const PlanRow& row : event.plan) {
    plan.push_back({{"key", text(row.key)},
                    {"value", text(row.value)},
                    {"origin", std::string(origin_name(row.origin))},
                    {"reason", text(row.reason)}});
  }
  return {{"event", "run_started"},
          {"folder", text(event.folder)},
          {"title", text(event.title)},
          {"scalars", scalars},
          {"epochs", event.epochs},
          {"steps_per_epoch", event.steps_per_epoch},
          {"first_step", event.first_step},
          {"last_step", event.last_step},
          {"plan", plan}};
}

Json to_json(const StepFinished& event, const std::vector<std::string>& names) {
  Json json = begin("step", event.position, event.step);
  json["samples"] = event.samples;
  json["seconds"] = number(event.seconds);
  json["data_wait"] = number(event.data_wait_seconds);
  json["lr"] = number(event.lr);
  if (event.memory_bytes >= 0) {
    json["memory_bytes"] = event.memory_bytes;
  }
  if (event.merged > 0) {
    json["merged"] = event.merged;
  }
  Json scalars = Json::object();
  if (event.scalars) {
    const Scalars values = event.scalars->read();
    for (std::size_t i = 0; i < std::min(values.count, names.size()); ++i) {
      scalars[names[i]] = number(values.values[i]);
    }
  }
  json["scalars"] = std::move(scalars);
  return json;
}

Json to_json(const Fed& event, const std::vector<std::string>&) {
  const auto stages = [](const std::vector<StageFigures>& figures) {
    Json json = Json::object();
    for (const StageFigures& stage : figures) {
      json[stage.name] = number(stage.seconds);
    }
    return json;
  };
  return {{"event", "fed"},
          {"step", event.step},
          {"seconds", number(event.seconds)},
          {"waited", number(event.waited_seconds)},
          {"samples", event.source.samples},
          {"threads", event.source.threads},
          {"loader", stages(event.source.stages)},
          {"copy", number(event.source.copy_seconds)},
          {"consumer", stages(event.consumer)}};
}

Json to_json(const Evaluated& event, const std::vector<std::string>&) {
  Json json = begin("evaluated", event.position, event.step);
  json["split"] = text(event.split);
  json["seconds"] = number(event.seconds);
  json["best"] = event.best;
  Json metrics = Json::object();
  for (const MetricValue& metric : event.metrics) {
    metrics[metric.name] = number(metric.value);
  }
  json["metrics"] = std::move(metrics);
  return json;
}

Json to_json(const Evaluating& event, const std::vector<std::string>&) {
  return {{"event", "evaluating"},
          {"step", event.step},
          {"split", text(event.split)},
          {"done", event.done},
          {"samples", event.samples}};
}

Json to_json(const CheckpointSaved& event, const std::vector<std::string>&) {
  return {{"event", "checkpoint"}, {"step", event.step}, {"kind", text(event.kind)}, {"path", text(event.path)}};
}

Json to_json(const FaultSurvived& event, const std::vector<std::string>&) {
  return {{"event", "fault"}, {"step", event.step}, {"kind", text(event.kind)}, {"text", text(event.text)}};
}

Json to_json(const Finding& event, const std::vector<std::string>&) {
  return {{"event", "finding"}, {"text", text(event.text)}};
}

Json to_json(const Artifact& event, const std::vector<std::string>&) {
  return {{"event", "artifact"}, {"step", event.step}, {"name", text(event.name)}, {"path", text(event.path)}};
}

Json to_json(const WeightHistograms& event, const std::vector<std::string>&) {
  return {{"event", "weight_histograms"}, {"step", event.step}, {"tensors", event.weights.size()}};
}

Json to_json(const RunFinished& event, const std::vector<std::string>&) {
  return {{"event", "run_finished"},
          {"step", event.step},
          {"outcome", text(event.outcome)},
          {"text", text(event.text)},
          {"seconds", number(event.seconds)}};
}

}  // namespace

nlohmann::ordered_json event_json(const Event& event, const std::vector<std::string>& scalars) {
  return std::visit([&](const auto& each) { return to_json(each, scalars); }, event);
}

}  // namespace stoker::io
