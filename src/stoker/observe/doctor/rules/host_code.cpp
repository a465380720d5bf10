// SPDX-License-Identifier: Apache-2.0
// The step waits for code of other libraries, or for NumPy, on the host.
#include <array>
#include <map>

#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.1;  // of the time

// Garbage collection is a part of its own, with a rule of its own.
constexpr std::array<std::string_view, 7> kNoFault = {"torch",     "python", "torchvision", "contextlib",
                                                      "functools", "abc",    "gc"};

bool is_foreign(const CallShare& call) {
  return !call.library.empty() && !call.library.starts_with("_") &&
         std::ranges::find(kNoFault, call.library) == kNoFault.end();
}

// A function of the script, or its loop, by what it spends outside torch. Its own lines count if most of its calls
// leave torch: an operator such as `a * b` is no call.
struct Spender {
  double foreign = 0, torch = 0, own = 0, most = 0;
  std::string library;  // that it spends most in
  [[nodiscard]] double share() const { return foreign + (foreign > torch ? own : 0); }
};

std::map<std::string, Spender> spenders(const Facts& facts) {
  std::map<std::string, Spender> result;
  for (const CallShare& call : facts.calls) {
    if (call.part != "step") {
      continue;
    }
    Spender& spender = result[call.caller];
    if (is_foreign(call)) {
      spender.foreign += call.share;
      spender.library = call.share > spender.most ? call.library : spender.library;
      spender.most = std::max(spender.most, call.share);
    } else {
      (call.library.empty() ? spender.own : spender.torch) += call.share;
    }
  }
  for (const CallShare& call : facts.calls) {
    if (call.part == "loader" && !call.caller.empty()) {
      result.erase(call.caller);  // it loads, in the training process
    }
  }
  return result;
}

// The line of a function's file that was looked at most, in the step.
std::string line_of(const Facts& facts, const std::string& caller) {
  const std::size_t begin = caller.find('('), end = caller.rfind(':');
  const std::string file = begin == std::string::npos ? "" : caller.substr(begin + 1, end - begin);
  std::int64_t most = 0;
  std::string line;
  for (const Site& site : facts.sites) {
    if (site.part == "other" && !file.empty() && site.where.starts_with(file) && site.looks > most) {
      most = site.looks;
      line = fmt::format("{} ({})", site.where, site.text);
    }
  }
  return line;
}

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  const auto all = spenders(facts);
  const auto most = std::ranges::max_element(all, {}, [](const auto& each) { return each.second.share(); });
  const double share = most == all.end() ? 0 : most->second.share();
  if (share < kMost || most->second.library.empty()) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("The step spends {} of the time outside torch: {} in {}", percent(share),
                              most->second.library, most->first.empty() ? "the training loop" : most->first);
  finding.evidence = {fmt::format("{}: {} of three steps (script)", most->second.library, percent(most->second.most))};
  if (const std::string line = line_of(facts, most->first); !line.empty()) {
    finding.evidence.push_back("often seen at " + line);
  }
  finding.cure = "torch's own operators, less often, or in a worker of the loader";
  finding.in_host = true;
  finding.gain = predict(facts.periods, share_of_time(std::min(share, 0.95)), {.low = 0.85, .high = 1.5});
  return finding;
}

}  // namespace

const Rule kHostCode = {
    .id = "host_code",
    .level = Level::kScript,
    .signal = "calls of three steps, by the library and the function of the script that calls it",
    .threshold = "10 % of the time in one function",
    .source = "a choice: less is not worth a rewrite",
    .disproof = "the function computes what the step needs, and torch takes as long",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
