// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "stoker/base/file.h"
#include "stoker/study/trace/json_parts.h"

namespace stoker::study {
namespace {

using namespace observe::trace;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostPoints = 1000;  // of a memory curve
constexpr std::size_t kMostSteps = 10'000;

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

Json use_json(const DeviceUse& use) {
  const std::int64_t compute = use.time(kComputing), communication = use.time(kCommunicating),
                     copies = use.time(kCopying), with_compute = use.time(kComputing | kCommunicating);
  return {{"total_ms", ms(use.total())},
          {"busy_ms", ms(use.busy())},
          {"idle_ms", ms(use.idle())},
          {"busy_share", share(use.busy(), use.total())},
          {"compute_ms", ms(compute)},
          {"communication_ms", ms(communication)},
          {"memory_ms", ms(copies)},
          {"compute_and_communication_ms", ms(with_compute)},
          {"compute_and_memory_ms", ms(use.time(kComputing | kCopying))},
          {"communication_and_memory_ms", ms(use.time(kCommunicating | kCopying))},
          {"exposed_communication_ms", ms(communication - with_compute)},
          {"exposed_memory_ms", ms(use.by_state[kCopying])}};
}

Json idle_json(const IdleTime& idle) {
  Json by = Json::array(), names = Json::array();
  for (std::size_t i = 0; i < kDoings; ++i) {
    if (idle.by_doing[i] > 0) {
      const auto doing = static_cast<Doing>(i);
      by.push_back({{"cause", doing_key(doing)},
                    {"words", doing_name(doing)},
                    {"ms", ms(idle.by_doing[i])},
                    {"share", share(idle.by_doing[i], idle.total)}});
    }
  }
  std::stable_sort(by.begin(), by.end(), [](const Json& a, const Json& b) { return a["ms"] > b["ms"]; });
  for (std::size_t i = 0; i < std::min(idle.names.size(), kMostRows); ++i) {
    const IdleName& name = idle.names[i];
    names.push_back({{"cause", doing_key(name.doing)},
                     {"name", printable(name.name)},
                     {"ms", ms(name.time)},
                     {"times", name.times}});
  }
  return {{"window_ms", ms(idle.window)},
          {"total_ms", ms(idle.total)},
          {"unattributed_share", share(idle.of(Doing::kUnattributed), idle.total)},
          {"by_cause", by},
          {"by_name", names}};
}

Json devices_json(const TraceFacts& facts) {
  Json all = Json::array();
  for (const DeviceFactsOfTrace& each : facts.devices) {
    Json streams = Json::array();
    for (const StreamUse& stream : each.time.streams) {
      streams.push_back({{"stream", stream.stream},
                         {"busy_ms", ms(stream.busy)},
                         {"alone_ms", ms(stream.alone)},
                         {"pieces", stream.pieces}});
    }
    Json device = {{"device", each.time.device}};
    for (const DeviceFacts& known : facts.trace.devices) {
      if (known.id == each.time.device && !known.name.empty()) {
        device["name"] = printable(known.name);
      }
    }
    device["first_to_last_work"] = use_json(each.time.whole);
    if (!facts.steps.empty()) {
      device["steps"] = use_json(each.time.steps);
    }
    device["streams"] = streams;
    device["idle"] = idle_json(each.idle);
    device["idle_first_to_last_work"] = idle_json(each.idle_whole);
    all.push_back(device);
  }
  return all;
}

Json steps_json(const TraceFacts& facts) {
  if (facts.steps.empty()) {
    return nullptr;
  }
  Json list = Json::array();
  for (std::size_t i = 0; i < std::min(facts.steps.size(), kMostSteps); ++i) {
    const Step& step = facts.steps[i];
    list.push_back({{"name", printable(step.name)},
                    {"begin_ms", ms(step.time.begin - facts.window.front().begin)},
                    {"ms", ms(step.time.length())}});
  }
  return {{"count", facts.steps.size()}, {"mean_ms", ms(facts.mean_step())}, {"list", list}};
}

Json work_json(const TraceFacts& facts) {
  Json all = Json::array();
  for (std::size_t i = 0; i < std::min(facts.work.size(), kMostRows); ++i) {
    const WorkSum& sum = facts.work[i];
    Json row = {{"name", printable(sum.name)}, {"kind", kind_name(sum.kind)}, {"work", work_name(sum.work)},
                {"times", sum.times},          {"ms", ms(sum.total)},         {"longest_ms", ms(sum.longest)}};
    if (sum.bytes >= 0) {
      row["bytes"] = sum.bytes;
    }
    if (!sum.launched_by.empty()) {
      row["launched_by"] = printable(sum.launched_by);
    }
    all.push_back(row);
  }
  return all;
}

Json operators_json(const TraceFacts& facts) {
  Json all = Json::array();
  for (std::size_t i = 0; i < std::min(facts.operators.size(), kMostRows); ++i) {
    const OperatorSum& sum = facts.operators[i];
    Json row = {{"name", printable(sum.name)}};
    if (!sum.shapes.empty()) {
      row["shapes"] = printable(sum.shapes);
    }
    row.update({{"times", sum.times},
                {"host_ms", ms(sum.host)},
                {"host_self_ms", ms(sum.host_self)},
                {"device_ms", ms(sum.device)},
                {"device_self_ms", ms(sum.device_self)}});
    all.push_back(row);
  }
  return all;
}

Json ranges_json(const TraceFacts& facts) {
  Json all = Json::array();
  for (std::size_t i = 0; i < std::min(facts.ranges.size(), kMostRows); ++i) {
    const RangeSum& sum = facts.ranges[i];
    all.push_back({{"name", printable(sum.name)},
                   {"times", sum.times},
                   {"host_ms", ms(sum.host)},
                   {"device_ms", ms(sum.device)}});
  }
  return all;
}

// At most kMostPoints: of each stretch of time its highest point.
Json points_json(const MemoryCurve& curve, std::int64_t begin) {
  Json points = Json::array();
  const std::size_t stride = (curve.points.size() + kMostPoints - 1) / kMostPoints;
  for (std::size_t i = 0; i < curve.points.size(); i += stride) {
    const auto last = curve.points.begin() + static_cast<std::ptrdiff_t>(std::min(i + stride, curve.points.size()));
    const auto highest =
        std::max_element(curve.points.begin() + static_cast<std::ptrdiff_t>(i), last,
                         [](const MemoryPoint& a, const MemoryPoint& b) { return a.allocated < b.allocated; });
    points.push_back({ms(highest->time - begin), highest->allocated,
                      highest->reserved < 0 ? Json(nullptr) : Json(highest->reserved)});
  }
  return points;
}

Json memory_json(const TraceFacts& facts) {
  Json all = Json::array();
  const std::int64_t begin = facts.window.empty() ? 0 : facts.window.front().begin;
  for (const MemoryCurve& curve : facts.memory) {
    all.push_back({{"device", curve.device < 0 ? Json("host") : Json(curve.device)},
                   {"counted_from_begin_of_trace", curve.from_begin},
                   {"peak_bytes", curve.peak},
                   {"peak_at_ms", ms(curve.peak_time - begin)},
                   {"peak_reserved_bytes", curve.peak_reserved < 0 ? Json(nullptr) : Json(curve.peak_reserved)},
                   {"allocations", curve.allocations},
                   {"points", points_json(curve, begin)}});
  }
  return all;
}

Json path_json(const TraceFacts& facts) {
  const CriticalPath& path = facts.path;
  if (!path.found) {
    return nullptr;
  }
  std::map<std::pair<PathPart, std::string_view>, std::int64_t> sums;
  for (const PathEdge& edge : path.edges) {
    if (edge.counted > 0) {
      const std::string_view name = edge.event == kNone ? "" : facts.trace.name(facts.trace.events[edge.event]);
      sums[{edge.part, name}] += edge.counted;
    }
  }
  std::vector<std::pair<std::int64_t, std::pair<PathPart, std::string_view>>> order;
  for (const auto& [key, time] : sums) {
    order.emplace_back(time, key);
  }
  std::ranges::stable_sort(order, std::ranges::greater(), [](const auto& each) { return each.first; });
  Json by = Json::array();
  for (std::size_t i = 0; i < std::min(order.size(), kMostRows); ++i) {
    by.push_back({{"part", path_part_name(order[i].second.first)},
                  {"name", printable(std::string(order[i].second.second))},
                  {"ms", ms(order[i].first)}});
  }
  const std::int64_t recorded = facts.recorded_path();
  return {{"length_ms", ms(path.length)},
          {"host_ms", ms(path.host)},
          {"device_ms", ms(path.device)},
          {"delay_ms", ms(path.delay)},
          {"uncounted_ms", ms(path.uncounted)},
          {"length_by_recorded_edges_ms", recorded < 0 ? Json(nullptr) : Json(ms(recorded))},
          {"by_name", by}};
}

}  // namespace

Json facts_json(const TraceFacts& facts) {
  const Trace& trace = facts.trace;
  Json json = {{"file", printable(trace.file)}};
  if (trace.rank >= 0) {
    json["rank"] = trace.rank;
    json["world_size"] = trace.world_size;
  }
  json["json_bytes"] = trace.json_bytes;
  json["entries"] = trace.entries;
  json["events"] = trace.events.size();
  json["whole_ms"] = ms(whole_time(trace).length());
  json["damage"] = damage_words(trace.damage);
  json["steps"] = steps_json(facts);
  json["devices"] = devices_json(facts);
  json["host_idle"] = facts.host_idle ? idle_json(*facts.host_idle) : Json(nullptr);
  json["critical_path"] = path_json(facts);
  json["device_work"] = work_json(facts);
  json["operators"] = operators_json(facts);
  json["ranges"] = ranges_json(facts);
  json["memory"] = memory_json(facts);
  return json;
}

}  // namespace stoker::study
