// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/observe/doctor/inventory.h"
#include "stoker/study/doctor/report.h"

namespace stoker::study {

using namespace observe::doctor;

namespace {

constexpr std::size_t kMostNames = 3;  // of rules that lack the same record; --json lists all

std::string gain_text(const Prediction& gain) {
  return fmt::format("{:.2f}x ({:.2f} to {:.2f})", gain.speedup, gain.low, gain.high);
}

std::string finding_text(std::size_t number, const Found& found) {
  const Finding& finding = found.finding;
  std::string text = fmt::format("\n{}. {}: {}\n   {}\n", number, found.rule->id,
                                 finding.danger.empty() ? gain_text(finding.gain) : finding.danger, finding.claim);
  for (const std::string& each : finding.evidence) {
    text += fmt::format("     {}\n", printable(each));
  }
  text += fmt::format("   do:       {}{}\n", finding.cure,
                      finding.option.empty() ? "" : fmt::format(" ({})", finding.option));
  return text + fmt::format("   wrong if: {}\n", found.rule->disproof);
}

// What a switch costs here, if a finding tells.
std::string cost_text(const Diagnosis& diagnosis, const Switch& each) {
  const auto found = std::ranges::find_if(
      diagnosis.found, [&](const Found& one) { return !each.rule.empty() && one.rule->id == each.rule; });
  return found == diagnosis.found.end() ? "" : fmt::format("; without that {}", gain_text(found->finding.gain));
}

std::string switches_text(const Examined& examined) {
  std::string wrong, right;
  for (const Switch& each : inventory(examined.facts)) {
    if (each.wanted.empty()) {
      right += fmt::format("{}{} {}", right.empty() ? "" : ", ", each.name, printable(each.value));
    } else {
      wrong += fmt::format("\n  {}: {}, better {}{}", each.name, printable(each.value), each.wanted,
                           cost_text(examined.diagnosis, each));
    }
  }
  return (wrong.empty() ? "" : "\nswitches to look at:" + wrong + "\n") +
         (right.empty() ? "" : "\nother switches: " + right + "\n");
}

}  // namespace

std::string diagnosis_text(const Examined& examined) {
  const auto& [facts, diagnosis] = examined;
  std::string text = printable(diagnosis.verdict) + "\n";
  if (!facts.periods.empty()) {
    text += fmt::format("{}{}{}, {:.1f} s\n", printable(facts.job), facts.job.empty() ? "" : "; ", facts.window(),
                        facts.seconds());
  }
  for (const std::string& each : facts.damage) {
    text += fmt::format("note: {}\n", each);
  }
  std::size_t number = 0;
  std::string small;
  for (const Found& each : diagnosis.found) {
    if (each.worth_saying()) {
      text += finding_text(++number, each);
    } else {
      small += fmt::format("\n  {}: {} {}", each.rule->id, gain_text(each.finding.gain), each.finding.claim);
    }
  }
  if (!small.empty()) {
    text += fmt::format("\nbelow {:.0f} %:{}\n", 100 * kWorthSaying, small);
  }
  text += switches_text(examined);
  std::map<std::string, std::vector<std::string_view>> by_missing;  // rules
  for (const Undecided& each : diagnosis.undecided) {
    by_missing[each.missing].push_back(each.rule->id);
  }
  std::string unknown;
  for (const auto& [missing, names] : by_missing) {
    const std::size_t told = names.size() <= kMostNames + 1 ? names.size() : kMostNames;
    const std::string rest = told < names.size() ? fmt::format(" and {} more rules", names.size() - told) : "";
    unknown += fmt::format("\n  {}{}: {}", fmt::join(names.begin(), names.begin() + static_cast<long>(told), ", "),
                           rest, missing);
  }
  return unknown.empty() ? text : text + fmt::format("\nnot told, for lack of:{}\n", unknown);
}

std::string rules_text() {
  std::string text;
  for (const Rule& rule : rules()) {
    text += fmt::format("{}\n  reads:     {} ({})\n  speaks at: {}\n  source:    {}\n  wrong if:  {}\n\n", rule.id,
                        rule.signal, level_name(rule.level), rule.threshold, rule.source, rule.disproof);
  }
  return text;
}

}  // namespace stoker::study
