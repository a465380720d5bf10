// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>

#include "stoker/study/tips/bench_model.h"
#include "stoker/study/tips/report.h"

namespace stoker::study {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json known(auto value) { return value >= 0 ? Json(value) : Json(nullptr); }

Json cell_json(const TipCell& cell) {
  Json json{{"model", cell.model}, {"word", text_of(cell.word)}};
  if (!cell.note.empty()) {
    json["note"] = cell.note;
    return json;
  }
  json["seconds_without"] = number(cell.seconds_without);
  json["seconds_with"] = number(cell.seconds_with);
  json["ratio"] = number(cell.ratio.median);
  json["low"] = number(cell.ratio.low);
  json["high"] = number(cell.ratio.high);
  json["pairs"] = cell.ratio.pairs;
  json["bytes_without"] = known(cell.bytes_without);
  json["bytes_with"] = known(cell.bytes_with);
  return json;
}

Json tips_of(const TipsTable& table) {
  Json tips = Json::array();
  const Tip* tip = nullptr;
  for (const TipCell& cell : table.cells) {
    if (cell.tip != tip) {
      tip = cell.tip;
      tips.push_back({{"id", tip->id},
                      {"title", tip->title},
                      {"without", tip->without},
                      {"with", tip->with},
                      {"cells", Json::array()}});
    }
    if (cell.model.empty()) {
      tips.back()["note"] = cell.note;
    } else {
      tips.back()["cells"].push_back(cell_json(cell));
    }
  }
  return tips;
}

}  // namespace

std::string tips_json(const TipsTable& table) {
  Json models = Json::object(), accuracies = Json::array();
  for (const BenchModelInfo& info : bench_models()) {
    models[info.name] = info.text;
  }
  for (const ScheduleAccuracy& each : table.accuracies) {
    accuracies.push_back({{"model", each.model}, {"schedule", each.schedule}, {"accuracy", each.accuracy}});
  }
  const Json json{{"format", 1},
                  {"stoker", table.stoker},
                  {"torch", table.torch},
                  {"compiler", table.compiler},
                  {"date", table.date},
                  {"device", table.device},
                  {"cpu", table.cpu},
                  {"cores", table.cores},
                  {"cores_used", table.cores_used},
                  {"memory_bytes", known(table.memory_bytes)},
                  {"kernel", table.kernel},
                  {"intra_op", table.intra_op},
                  {"load_before", known(table.load_before)},
                  {"load_after", known(table.load_after)},
                  {"seconds", table.seconds},
                  {"seconds_taken", table.seconds_taken},
                  {"clock", table.cpu_time ? "thread CPU" : "wall"},
                  {"quick", table.quick},
                  {"stopped", table.stopped},
                  {"models", std::move(models)},
                  {"tips", tips_of(table)},
                  {"accuracies", std::move(accuracies)}};
  return json.dump(1) + "\n";
}

}  // namespace stoker::study
