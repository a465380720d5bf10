// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "stoker/base/file.h"
#include "stoker/observe/doctor/inventory.h"
#include "stoker/study/doctor/json_parts.h"

namespace stoker::study {

using namespace observe::doctor;

namespace {

using Json = nlohmann::ordered_json;

Json found_json(const Found& found) {
  const Finding& finding = found.finding;
  Json evidence = Json::array();
  for (const std::string& each : finding.evidence) {
    evidence.push_back(printable(each));
  }
  return {{"rule", found.rule->id},
          {"claim", printable(finding.claim)},
          {"critical", found.critical()},
          {"danger", finding.danger.empty() ? Json(nullptr) : Json(finding.danger)},
          {"speedup", {{"likely", finding.gain.speedup}, {"low", finding.gain.low}, {"high", finding.gain.high}}},
          {"evidence", std::move(evidence)},
          {"cure", finding.cure},
          {"option", finding.option.empty() ? Json(nullptr) : Json(finding.option)},
          {"disproof", found.rule->disproof}};
}

}  // namespace

Json diagnosis_object(const Examined& examined) {
  const auto& [facts, diagnosis] = examined;
  Json findings = Json::array(), small = Json::array(), undecided = Json::array(), healthy = Json::array();
  for (const Found& each : diagnosis.found) {
    (each.worth_saying() ? findings : small).push_back(found_json(each));
  }
  for (const Undecided& each : diagnosis.undecided) {
    undecided.push_back({{"rule", each.rule->id}, {"missing", each.missing}});
  }
  for (const Rule* each : diagnosis.healthy) {
    healthy.push_back(each->id);
  }
  Json figures = Json::object();
  for (const auto& [name, figure] : facts.figures) {
    figures[printable(name)] = {{"value", figure.value}, {"source", figure.source}};
  }
  Json switches = Json::array();
  for (const Switch& each : inventory(facts)) {
    switches.push_back({{"name", each.name},
                        {"value", printable(each.value)},
                        {"wanted", each.wanted.empty() ? Json(nullptr) : Json(each.wanted)},
                        {"rule", each.rule.empty() ? Json(nullptr) : Json(each.rule)}});
  }
  return {{"kind", "diagnosis"},
          {"format", 1},
          {"verdict", printable(diagnosis.verdict)},
          {"job", printable(facts.job)},
          {"source", source_name(facts.source)},
          {"steps", facts.steps()},
          {"seconds", facts.seconds()},
          {"findings", std::move(findings)},
          {"below_threshold", std::move(small)},
          {"undecided", std::move(undecided)},
          {"healthy", std::move(healthy)},
          {"switches", std::move(switches)},
          {"figures", std::move(figures)},
          {"damage", facts.damage}};
}

std::string diagnosis_json(const Examined& examined) {
  return diagnosis_object(examined).dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace stoker::study
