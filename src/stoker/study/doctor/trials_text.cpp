// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/counted.h"
#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/study/doctor/cures.h"
#include "stoker/study/doctor/json_parts.h"

namespace stoker::study {

using namespace observe::doctor;

namespace {

std::string tried_text(const Tried& tried) {
  std::string text = fmt::format("  {:<44} ", change_text(tried.cure));
  if (tried.cure.prediction) {
    const Prediction& gain = *tried.cure.prediction;
    text += fmt::format("predicted {:.2f}x ({:.2f} to {:.2f}), ", gain.speedup, gain.low, gain.high);
  }
  if (!tried.trouble.empty()) {
    return text + fmt::format("not measured: {}\n", tried.trouble);
  }
  return text + fmt::format("measured {:.2f}x ({:.2f} to {:.2f}, {}): {}\n", tried.gain.median, tried.gain.low,
                            tried.gain.high, counted(tried.gain.pairs, "pair"), tried.kept ? "kept" : "not kept");
}

}  // namespace

std::string change_text(const Cure& cure) {
  return printable(cure.option) +
         (cure.where.empty() || cure.where.ends_with(":0") ? "" : " at " + printable(cure.where));
}

std::string trials_text(const std::vector<Tried>& tried) {
  if (tried.empty()) {
    return "Nothing was found that can be tried from outside.\n";
  }
  std::string table, edits;
  double together = 1;
  for (const Tried& each : tried) {
    table += tried_text(each);
    if (each.kept) {
      together *= each.gain.median;
      edits += fmt::format(
          "  {}{}\n", change_text(each.cure),
          each.cure.changes_results ? "   (other rounding or random numbers: results differ a little)" : "");
    }
  }
  if (std::ranges::all_of(tried, [](const Tried& each) { return !each.trouble.empty(); })) {
    return fmt::format("Nothing could be measured.\n\n{}", table);
  }
  if (edits.empty()) {
    return fmt::format("None of these makes the training surely faster; leave them as they are.\n\n{}", table);
  }
  return fmt::format(
      "{:.2f} times as fast with these changes:\n{}\nTried, each beside those that were kept before:\n{}", together,
      edits, table);
}

std::string trials_json(const Trials& trials) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (const Tried& each : trials.tried) {
    Json row = {{"option", printable(each.cure.option)},
                {"where", printable(each.cure.where)},
                {"rule", each.cure.rule.empty() ? Json(nullptr) : Json(each.cure.rule)},
                {"predicted", nullptr},
                {"measured", nullptr},
                {"kept", each.kept},
                {"changes_results", each.cure.changes_results},
                {"trouble", each.trouble.empty() ? Json(nullptr) : Json(each.trouble)}};
    if (const auto& gain = each.cure.prediction) {
      row["predicted"] = {{"likely", gain->speedup}, {"low", gain->low}, {"high", gain->high}};
    }
    if (each.trouble.empty()) {
      row["measured"] = {
          {"median", each.gain.median}, {"low", each.gain.low}, {"high", each.gain.high}, {"pairs", each.gain.pairs}};
    }
    rows.push_back(std::move(row));
  }
  const Json json = {
      {"kind", "trials"}, {"format", 1}, {"diagnosis", diagnosis_object(trials.examined)}, {"tried", std::move(rows)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace stoker::study
