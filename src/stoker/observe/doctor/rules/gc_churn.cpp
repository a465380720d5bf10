// SPDX-License-Identifier: Apache-2.0
// Python's garbage collector takes a noticeable share of the step time.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.02;  // of the time

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  const double share = facts.share("gc").value_or(0);
  if (share < kMost) {
    return Healthy{};
  }
  const auto called = std::ranges::find_if(facts.sites, [](const Site& site) {
    return site.part == "gc" && site.text.find("gc.collect") != std::string::npos;
  });
  const bool asked = called != facts.sites.end();
  Finding finding;
  finding.claim = fmt::format("Python's garbage collector takes {} of the time{}", percent(share),
                              asked ? ": it is called at " + called->where : "");
  finding.evidence = {part_words(facts, "gc")};
  finding.cure =
      asked ? "do not call gc.collect() in the loop; it frees no memory of a device that is in use"
            : "gc.freeze() once the data set and the model exist, so that later runs do not visit their objects";
  finding.option = asked ? "" : "gc.freeze()";
  finding.in_host = true;
  finding.gain = predict(facts.periods, part_of_time("gc"), {.low = 1, .high = 1.1});
  return finding;
}

}  // namespace

const Rule kGcChurn = {
    .id = "gc_churn",
    .level = Level::kScript,
    .signal = "time in Python's garbage collector",
    .threshold = "2 % of the time",
    .source = "the smallest gain that is worth a change",
    .disproof =
        "the share stays without the call and with frozen objects: then the loop itself makes that many cyclic objects",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
