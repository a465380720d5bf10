// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/tune.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "stoker/base/bytes_text.h"
#include "stoker/base/counted.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/shell_word.h"
#include "stoker/base/thousands.h"
#include "stoker/job/job.h"

namespace stoker::job {
namespace {

using memory::Probe;
using Json = nlohmann::ordered_json;

constexpr double kBar = 24;  // characters of the longest bar

std::vector<Probe> by_samples(const Tuned& tuned) {
  std::vector<Probe> probes = tuned.passes.found.probes;
  std::ranges::sort(probes, {}, &Probe::samples);
  return probes;
}

// Bytes that all tensors of the run hold at the peak of a pass; -1: not known.
std::int64_t whole_bytes(const Tuned& tuned, const Probe& probe) {
  return probe.bytes < 0 || tuned.passes.held < 0 ? -1 : tuned.passes.held + probe.bytes;
}

double rate(const Probe& probe) { return probe.fits ? static_cast<double>(probe.samples) / probe.seconds : 0; }

double best_rate(const std::vector<Probe>& probes) {
  double best = 0;
  for (const Probe& each : probes) {
    best = std::max(best, rate(each));
  }
  return best;
}

std::string row(const Tuned& tuned, const Probe& probe, double best) {
  const std::int64_t bytes = whole_bytes(tuned, probe);
  const std::string memory = bytes < 0 ? "-" : bytes_text(bytes);
  if (!probe.fits) {
    return fmt::format("{:>16} {:>11} {:>14} {:>11}  does not fit\n", thousands(probe.samples), memory, "-", "-");
  }
  const auto bar = static_cast<std::size_t>(std::max(1.0, std::round(kBar * rate(probe) / best)));
  const std::string mark = probe.samples == tuned.passes.found.largest ? " largest" : "";
  return fmt::format("{:>16} {:>11} {:>11.3g} ms {:>11}  {}{}\n", thousands(probe.samples), memory,
                     1e3 * probe.seconds_per_sample(), thousands(std::llround(rate(probe))), std::string(bar, '#'),
                     mark);
}

// What a run needs besides batch and microbatch, so that it is the run that was searched for.
std::string asked_words(const train::Options& options, const train::Plan& plan) {
  std::map<std::string, std::string> values;
  for (const auto& [key, given] : options.all()) {
    values[key] = given.value;
  }
  for (const std::string& key : options.autos()) {
    values[key] = "auto";
  }
  if (plan.notes.at("precision").origin == core::Origin::kMeasured) {  // a trial of another run may choose differently
    values["precision"] = plan.precision;
  }
  values.erase("batch");
  values.erase("microbatch");
  std::string words;
  for (const auto& [key, value] : values) {
    words += " " + shell_word(key + "=" + value);
  }
  return words;
}

std::string choices_text(const Tuned& tuned) {
  const memory::Found& found = tuned.passes.found;
  const train::Plan& plan = tuned.plan;
  std::string text =
      fmt::format("\nlargest that fits  {}: {}\n", counted(found.largest, "sample"), found.largest_reason);
  text += fmt::format("fastest            {}\n", counted(found.fastest, "sample"));
  if (tuned.passes.sets_batch) {
    text += fmt::format("choice             batch={}: {}\n", plan.batch, found.chosen_reason);
    text += fmt::format("learning rate      {}\n", tuned.passes.lr_note);
  } else {
    const std::int64_t passes = (tuned.passes.batch + plan.microbatch - 1) / plan.microbatch;
    text += fmt::format("choice             microbatch={}: {}; a batch of {} takes {}\n", plan.microbatch,
                        found.chosen_reason, tuned.passes.batch,
                        passes == 1 ? "one pass" : fmt::format("{} even passes", passes));
  }
  const std::string words = shell_word(printable(tuned.data)) + printable(tuned.asked);
  text += fmt::format("\nUse it: stoker train {} batch={}", words, plan.batch);
  return text + (tuned.passes.sets_batch ? "\n"
                                         : fmt::format(" microbatch={}\nTo search the batch, too: stoker tune {} "
                                                       "batch=auto\n",
                                                       plan.microbatch, words));
}

}  // namespace

Tuned tune(Request request, const Say& say) {
  if (const auto* given = request.options.find("microbatch")) {
    fail<ConfigError>("job.tune", "tune searches the microbatch; remove microbatch={}", given->value);
  }
  if (!request.plan_file.empty()) {
    fail<ConfigError>("job.tune", "plan= repeats a plan unchanged, so there is nothing to search; remove plan=");
  }
  if (const auto* given = request.options.find("optimizer_in_backward"); given != nullptr && given->value == "on") {
    fail<ConfigError>("job.tune",
                      "tune searches passes, and optimizer_in_backward=on has one pass per batch; remove "
                      "optimizer_in_backward=on");
  }
  if (request.options.is_auto("recompute")) {
    fail<ConfigError>("job.tune",
                      "recompute=auto makes given passes fit, and tune searches passes; remove recompute=auto, or set "
                      "recompute=all to search the passes of a run that recomputes");
  }
  if (!request.options.is_auto("batch")) {
    request.options.set("microbatch", "auto");
  }
  Tuned tuned;
  tuned.data = request.data.native();
  const train::Options options = request.options;
  const Job job = Job::prepare(std::move(request), say);
  tuned.title = job.title();
  tuned.plan = job.plan();
  tuned.asked = asked_words(options, tuned.plan);
  tuned.memory_limit = tuned.plan.memory_limit;
  tuned.passes = job.passes().value();
  return tuned;
}

std::string tune_text(const Tuned& tuned) {
  const PassChoice& passes = tuned.passes;
  const std::vector<Probe> probes = by_samples(tuned);
  const double best = best_rate(probes);
  std::string text = printable(tuned.title) + "\n";
  if (passes.held >= 0) {
    text += fmt::format("between passes tensors hold {} (weights, {}{})", bytes_text(passes.held), tuned.plan.optimizer,
                        tuned.plan.ema > 0 ? ", averages" : "");
    text += passes.limit < 0
                ? "\n"
                : fmt::format("; {} are left{}; the memory column includes them\n", bytes_text(passes.limit),
                              tuned.memory_limit > 0 ? " under memory_limit=" : "");
  }
  text += fmt::format("\n{:>16} {:>11} {:>14} {:>11}\n", "samples per pass", "memory", "per sample", "samples/s");
  for (const Probe& each : probes) {
    text += row(tuned, each, best);
  }
  text += choices_text(tuned);
  return text + fmt::format("{} in {:.1f} s; nothing was trained or written.\n",
                            counted(static_cast<std::int64_t>(probes.size()), "probe"), passes.found.seconds);
}

std::string tune_json(const Tuned& tuned) {
  const PassChoice& passes = tuned.passes;
  const auto known = [](std::int64_t bytes) { return bytes < 0 ? Json() : Json(bytes); };
  Json probes = Json::array();
  for (const Probe& each : by_samples(tuned)) {
    probes.push_back({{"samples", each.samples},
                      {"fits", each.fits},
                      {"bytes", known(whole_bytes(tuned, each))},
                      {"seconds_per_sample", each.fits ? Json(each.seconds_per_sample()) : Json()},
                      {"samples_per_second", each.fits ? Json(rate(each)) : Json()}});
  }
  Json result = {{"data", printable(tuned.data)},
                 {"title", printable(tuned.title)},
                 {"memory_limit", tuned.memory_limit > 0 ? Json(tuned.memory_limit) : Json()},
                 {"held_bytes", known(passes.held)},
                 {"left_bytes", known(passes.limit)},
                 {"largest", {{"samples", passes.found.largest}, {"reason", passes.found.largest_reason}}},
                 {"fastest", passes.found.fastest},
                 {"chosen", {{"samples", passes.found.chosen}, {"reason", passes.found.chosen_reason}}},
                 {"batch", tuned.plan.batch},
                 {"microbatch", tuned.plan.microbatch},
                 {"peak_lr", tuned.plan.peak_lr()},
                 {"seconds", passes.found.seconds},
                 {"probes", probes}};
  return result.dump(2) + "\n";
}

}  // namespace stoker::job
