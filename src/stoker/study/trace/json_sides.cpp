// SPDX-License-Identifier: Apache-2.0
// Several traces side by side as JSON: ranks, and two traces of one program.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/file.h"
#include "stoker/study/trace/json_parts.h"

namespace stoker::study {
namespace {

using namespace observe::trace;
using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

Json ranks_json(const RanksFacts& facts) {
  Json rows = Json::array(), collectives = Json::array();
  for (const RankRow& row : facts.rows) {
    rows.push_back({{"rank", row.rank < 0 ? Json(nullptr) : Json(row.rank)},
                    {"file", printable(row.file)},
                    {"mean_step_ms", row.step < 0 ? Json(nullptr) : Json(ms(row.step))},
                    {"window_ms", ms(row.window)},
                    {"busy_ms", ms(row.busy)},
                    {"compute_ms", ms(row.compute)},
                    {"communication_ms", ms(row.communication)},
                    {"exposed_communication_ms", ms(row.exposed_communication)},
                    {"waited_in_collectives_ms", ms(row.waited)}});
  }
  for (std::size_t i = 0; i < std::min(facts.collectives.size(), kMostRows); ++i) {
    const Collective& each = facts.collectives[i];
    Json time = Json::array(), waited = Json::array();
    for (std::size_t rank = 0; rank < each.time.size(); ++rank) {
      time.push_back(ms(each.time[rank]));
      waited.push_back(ms(each.waited[rank]));
    }
    collectives.push_back(
        {{"name", printable(each.name)}, {"matched", each.matched}, {"ms", time}, {"waited_ms", waited}});
  }
  Json path = nullptr;
  if (facts.path.length >= 0) {
    Json by_row = Json::array();
    for (const std::int64_t each : facts.path.by_row) {
      by_row.push_back(ms(each));
    }
    path = {{"length_ms", ms(facts.path.length)},
            {"in_collectives_ms", ms(facts.path.in_collectives)},
            {"by_row_ms", by_row}};
  }
  const double skew = facts.step_skew();
  return {{"rows", rows},
          {"collectives", collectives},
          {"unmatched_calls", facts.unmatched},
          {"critical_path", path},
          {"missing_ranks", facts.missing},
          {"step_skew", skew < 0 ? Json(nullptr) : Json(skew)},
          {"straggler", facts.straggler < 0 ? Json(nullptr) : Json(facts.straggler)}};
}

Json changes_json(const std::vector<Change>& changes) {
  Json all = Json::array();
  for (std::size_t i = 0; i < std::min(changes.size(), kMostRows); ++i) {
    const Change& change = changes[i];
    Json row = {{"name", printable(change.name)}};
    if (!change.shapes.empty()) {
      row["shapes"] = printable(change.shapes);
    }
    row.update({{"change", change_name(change.word)},
                {"before_ms", ms(change.before)},
                {"after_ms", ms(change.after)},
                {"times_before", change.times_before},
                {"times_after", change.times_after}});
    all.push_back(row);
  }
  return all;
}

}  // namespace

Json traces_object(const Traces& traces) {
  Json all = Json::array();
  for (const auto& each : traces) {
    all.push_back(facts_json(*each));
  }
  Json json = {{"format", "stoker.trace"}, {"version", kVersion}, {"traces", all}};
  json["ranks"] = traces.size() > 1 ? ranks_json(ranks_facts(traces)) : Json(nullptr);
  return json;
}

Json comparison_object(const TraceFacts& before, const TraceFacts& after) {
  const Comparison found = compare(before, after);
  return {{"format", "stoker.trace.comparison"},
          {"version", kVersion},
          {"times_are", found.per_step ? "per step" : "of the whole trace"},
          {"operators_by", found.operators_by_host ? "host time" : "device time"},
          {"before", facts_json(before)},
          {"after", facts_json(after)},
          {"idle", changes_json(found.idle)},
          {"kernels", changes_json(found.kernels)},
          {"operators", changes_json(found.operators)}};
}

namespace {
std::string text_of(const Json& json) { return json.dump(1, ' ', false, Json::error_handler_t::replace); }
}  // namespace

std::string trace_json(const Traces& traces) { return text_of(traces_object(traces)); }

std::string comparison_json(const TraceFacts& before, const TraceFacts& after) {
  return text_of(comparison_object(before, after));
}

}  // namespace stoker::study
