// SPDX-License-Identifier: Apache-2.0
// Writes text without a tree of nlohmann::json: its destructor allocates memory for objects and arrays, and a sink that
// runs out of memory there would end the process. Single strings and numbers are safe.
#include "stoker/io/event_json.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <nlohmann/json.hpp>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"

namespace stoker::io {
namespace {

using namespace core;

std::string json_string(std::string_view text) { return nlohmann::json(text).dump(); }

// Shortest text that reads back the same value: as a float if the value is one.
template <std::floating_point Real>
std::string number(Real value) {
  if (std::isnan(value)) {
    return R"("nan")";
  }
  if (std::isinf(value)) {
    return value > 0 ? R"("inf")" : R"("-inf")";
  }
  return nlohmann::json::parse(fmt::format("{}", value)).dump();  // 0.1f as 0.1, not as 0.10000000149011612
}

std::string list(const std::vector<std::string>& values) { return fmt::format("[{}]", fmt::join(values, ",")); }

// An object whose values are complete texts.
class Object {
 public:
  Object() = default;
  explicit Object(const char* event) { text("event", event); }

  Object& raw(std::string_view key, std::string_view value) {
    const char* const comma = text_.size() > 1 ? "," : "";
    text_ += fmt::format("{}{}:{}", comma, json_string(key), value);
    return *this;
  }
  Object& text(std::string_view key, const std::string& value) {
    return raw(key, json_string(printable(value)));  // JSON is UTF-8; file names may not be
  }
  Object& count(std::string_view key, std::integral auto value) { return raw(key, fmt::format("{}", value)); }
  Object& real(std::string_view key, std::floating_point auto value) { return raw(key, number(value)); }
  Object& flag(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
  [[nodiscard]] std::string end() const { return text_ + '}'; }

 private:
  std::string text_ = "{";
};

Object begin(const char* kind, const Position& position, std::int64_t step) {
  Object json(kind);
  json.count("epoch", position.epoch).count("step", step);
  return json;
}

struct Asked {
  const std::vector<std::string>& scalars;
  bool place;
};

std::string to_json(const RunStarted& event, const Asked& asked) {
  std::vector<std::string> scalars, plan;
  for (const std::string& name : asked.scalars) {
    scalars.push_back(json_string(name));
  }
  Object json("run_started");
  if (asked.place) {
    json.text("folder", event.folder);
  }
  json.text("title", event.title)
      .raw("scalars", list(scalars))
      .count("epochs", event.epochs)
      .count("steps_per_epoch", event.steps_per_epoch)
      .count("first_step", event.first_step)
      .count("last_step", event.last_step);
  if (asked.place) {
    for (const PlanRow& row : event.plan) {
      Object each;
      each.text("key", row.key).text("value", row.value);
      each.raw("origin", json_string(origin_name(row.origin))).text("reason", row.reason);
      plan.push_back(each.end());
    }
    json.raw("plan", list(plan));
  }
  return json.end();
}

std::string to_json(const StepFinished& event, const Asked& asked) {
  Object json = begin("step", event.position, event.step);
  json.count("samples", event.samples)
      .real("seconds", event.seconds)
      .real("data_wait", event.data_wait_seconds)
      .real("lr", event.lr);
  if (event.memory_bytes >= 0) {
    json.count("memory_bytes", event.memory_bytes);
  }
  if (event.merged > 0) {
    json.count("merged", event.merged);
  }
  Object scalars;
  if (event.scalars) {
    const Scalars values = event.scalars->read();
    for (std::size_t i = 0; i < std::min(values.count, asked.scalars.size()); ++i) {
      scalars.real(asked.scalars[i], values.values[i]);
    }
  }
  return json.raw("scalars", scalars.end()).end();
}

std::string stages(const std::vector<StageFigures>& figures) {
  Object json;
  for (const StageFigures& stage : figures) {
    json.real(stage.name, stage.seconds);
  }
  return json.end();
}

// Of the stages that were measured in detail.
std::string detail(const std::vector<StageFigures>& figures, double (StageFigures::*seconds)() const) {
  Object json;
  for (const StageFigures& stage : figures) {
    if (stage.probed_seconds > 0) {
      json.real(stage.name, (stage.*seconds)());
    }
  }
  return json.end();
}

std::string to_json(const Fed& event, const Asked&) {
  Object json("fed");
  json.count("step", event.step)
      .real("seconds", event.seconds)
      .real("waited", event.waited_seconds)
      .count("samples", event.source.samples)
      .count("threads", event.source.threads)
      .raw("loader", stages(event.source.stages))
      .real("copy", event.source.copy_seconds)
      .raw("consumer", stages(event.consumer));
  if (std::ranges::any_of(event.source.stages, [](const StageFigures& stage) { return stage.probed_seconds > 0; })) {
    json.raw("loader_cpu", detail(event.source.stages, &StageFigures::cpu_seconds))
        .raw("loader_asleep", detail(event.source.stages, &StageFigures::asleep_seconds))
        .count("cores", event.source.cores);
  }
  if (!event.source.slowest.empty()) {
    json.text("slowest", event.source.slowest).real("slowest_seconds", event.source.slowest_seconds);
  }
  return json.end();
}

std::string to_json(const Evaluated& event, const Asked&) {
  Object json = begin("evaluated", event.position, event.step), metrics;
  for (const MetricValue& metric : event.metrics) {
    metrics.real(metric.name, metric.value);
  }
  json.text("split", event.split).real("seconds", event.seconds).flag("best", event.best);
  return json.raw("metrics", metrics.end()).end();
}

std::string to_json(const Evaluating& event, const Asked&) {
  Object json("evaluating");
  json.count("step", event.step).text("split", event.split).count("done", event.done).count("samples", event.samples);
  return json.end();
}

std::string to_json(const CheckpointSaved& event, const Asked& asked) {
  Object json("checkpoint");
  json.count("step", event.step).text("kind", event.kind);
  return asked.place ? json.text("path", event.path).end() : json.end();
}

std::string to_json(const FaultSurvived& event, const Asked&) {
  return Object("fault").count("step", event.step).text("kind", event.kind).text("text", event.text).end();
}

std::string to_json(const Finding& event, const Asked&) { return Object("finding").text("text", event.text).end(); }

std::string to_json(const Artifact& event, const Asked&) {
  return Object("artifact").count("step", event.step).text("name", event.name).text("path", event.path).end();
}

std::string to_json(const WeightHistograms& event, const Asked&) {
  return Object("weight_histograms").count("step", event.step).count("tensors", event.weights.size()).end();
}

// Version of the records below; docs/observe.md.
constexpr int kObservedVersion = 1;

Object observed(const char* kind, double time, std::int64_t step) {
  Object json(kind);
  json.count("version", kObservedVersion).real("time", time).count("step", step);
  return json;
}

std::string figures(const std::vector<Figure>& all) {
  Object json;
  for (const Figure& figure : all) {
    json.real(figure.name, figure.value);
  }
  return json.end();
}

std::string phases(const std::vector<PhaseTime>& all) {
  std::vector<std::string> texts;
  for (const PhaseTime& phase : all) {
    Object json;
    json.text("name", phase.name).real("seconds", phase.seconds);
    if (phase.cpu_seconds >= 0) {
      json.real("cpu_seconds", phase.cpu_seconds);
    }
    if (phase.device_seconds >= 0) {
      json.real("device_seconds", phase.device_seconds);
    }
    if (phase.p50 >= 0) {
      json.real("p50", phase.p50).real("p99", phase.p99);
    }
    texts.push_back(json.end());
  }
  return list(texts);
}

std::string to_json(const Monitored& event, const Asked&) {
  Object json = observed("monitor", event.time, event.step);
  return json.real("seconds", event.seconds).raw("figures", figures(event.figures)).end();
}

std::string to_json(const Anatomy& event, const Asked&) {
  Object json = observed("anatomy", event.time, event.step);
  if (event.whole) {
    json.flag("whole", true);
  }
  json.count("steps", event.steps).real("seconds", event.seconds);
  json.real("p50", event.p50).real("p90", event.p90).real("p99", event.p99).real("slowest", event.slowest);
  return json.raw("phases", phases(event.phases)).raw("marks", phases(event.marks)).end();
}

void known(Object& json, std::string_view key, double value) {
  if (value >= 0) {
    json.real(key, value);
  }
}

std::string to_json(const RankTimes& event, const Asked&) {
  Object json = observed("ranks", event.time, event.step);
  if (event.whole) {
    json.flag("whole", true);
  }
  json.count("steps", event.steps).real("seconds", event.seconds).real("exposed", event.exposed);
  std::vector<std::string> ranks, buckets;
  for (std::size_t rank = 0; rank < event.ranks.size(); ++rank) {
    const RankTime& time = event.ranks[rank];
    Object each;
    if (rank < event.hosts.size()) {
      each.text("host", event.hosts[rank]);
    }
    each.real("computed", time.computed);
    known(each, "data", time.data);
    known(each, "saving", time.saving);
    known(each, "delayed", time.delayed);
    ranks.push_back(each.real("waited", time.waited).end());
  }
  for (const BucketTime& bucket : event.buckets) {
    Object each;
    each.count("bytes", bucket.bytes).real("seconds", bucket.seconds).count("steps", bucket.steps);
    buckets.push_back(each.end());
  }
  return json.raw("ranks", list(ranks)).raw("buckets", list(buckets)).end();
}

std::string to_json(const SlowStep& event, const Asked&) {
  Object json = observed("slow_step", event.time, event.step);
  json.real("seconds", event.seconds).real("usual_seconds", event.usual_seconds);
  json.text("phase", event.phase).text("cause", event.cause);
  return json.raw("figures", figures(event.figures)).end();
}

std::string to_json(const RunFinished& event, const Asked&) {
  Object json("run_finished");
  json.count("step", event.step).text("outcome", event.outcome).text("text", event.text);
  return json.real("seconds", event.seconds).end();
}

}  // namespace

std::string event_json(const Event& event, const std::vector<std::string>& scalars, bool place) {
  return std::visit([&](const auto& each) { return to_json(each, Asked{scalars, place}); }, event);
}

}  // namespace stoker::io
