// SPDX-License-Identifier: Apache-2.0
// The step waits for data: which stage of the loader is the cause, and how many threads would keep up.
#include "stoker/base/counted.h"
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"
#include "stoker/observe/doctor/rules/script_input.h"
#include "stoker/observe/feeding.h"

namespace stoker::observe::doctor {
namespace {

// Chosen by bench/doctor/cures.py. More than all: evaluations load their samples faster, too.
constexpr Reach kReach = {.low = 0.85, .high = 1.1};
constexpr double kBusy = 0.15;  // of a core: less is no hindrance for another thread

// All periods as one.
core::Fed fed_of(const Facts& facts) {
  core::Fed sum{.seconds = facts.seconds(), .source = {}, .consumer = {}};
  for (const Period& period : facts.periods) {
    sum.waited_seconds += period.part("fetch");
    for (const auto& [name, time] : period.parts) {
      const bool pause = name == "logging" || name == "checkpoint" || name == "evaluation";
      const std::string what = pause ? name : "step";
      const auto known = std::ranges::find(sum.consumer, what, &core::StageFigures::name);
      if (name != "fetch") {
        (known == sum.consumer.end() ? sum.consumer.emplace_back(core::StageFigures{.name = what}) : *known).seconds +=
            time.seconds;
      }
    }
    if (period.loader) {
      core::add(sum.source, *period.loader);
    }
  }
  return sum;
}

// A loader with that many threads, on that many cores, needs some time for the samples of a period. What exceeds the
// rest of the period remains as waiting.
Saving loaded_with(int threads, int cores) {
  return [threads, cores](const Period& period) {
    const double waited = period.part("fetch");
    if (!period.loader) {
      return 0.0;
    }
    const core::StageSums spent = core::sum_of(period.loader->stages);
    const double needed = std::max(spent.seconds / threads, spent.cpu_seconds / cores);
    return waited - std::max(needed - (period.seconds - waited), 0.0);
  };
}

// Threads that the loader could have here: those that it has, and one for each core that nobody uses.
int threads_that_fit(const Facts& facts, const core::SourceFigures& loader, bool asleep) {
  const auto cores = cores_of(facts), own = facts.figure("process.cpu_cores"), others = busy_elsewhere(facts);
  if (asleep || !cores || !own || !others) {
    return 1024;
  }
  const double spare = *cores - *own - *others + kBusy;
  return std::max(loader.threads, 0) + static_cast<int>(std::max(spare, 0.0));
}

// A trace shows that the device waits for a batch, and not what the workers of a loader do meanwhile.
Judgement judge_trace(const Facts& facts) {
  const double share = *facts.share("fetch");
  if (share < kStarved) {
    return Healthy{};
  }
  const std::string name = idle_name(facts, "fetch");
  const bool single = name.find("SingleProcess") != std::string::npos;
  Finding finding;
  finding.claim = fmt::format("The device waits for data {} of the time: {}", percent(share), name);
  finding.evidence = {part_words(facts, "fetch")};
  finding.cure = single ? "loader workers beside the training process (num_workers of 1 or more)"
                        : "more or faster loader workers (num_workers), or prepared data";
  finding.gain = predict(facts.periods, replayed(facts, "fetch"), {.low = 0.6, .high = 1});
  return finding;
}

Judgement judge(const Facts& facts) {
  if (!facts.share("fetch")) {
    return Abstained{"the time that the step waits for data (anatomy)"};
  }
  if (facts.source == Source::kTrace) {
    return judge_trace(facts);
  }
  if (facts.source == Source::kScript || facts.source == Source::kProcess) {
    return judge_script_input(facts);
  }
  const core::Fed fed = fed_of(facts);
  if (fed.source.samples == 0 || fed.source.stages.empty()) {
    return *facts.share("fetch") < kStarved ? Judgement(Healthy{}) : Abstained{"the loader's stages (fed)"};
  }
  const Feeding feeding = explain(fed);
  if (!feeding.late) {
    return Healthy{};
  }
  const bool asleep = feeding.more_threads > 0;
  const int wanted = std::max(fed.source.threads, 0) + std::max(feeding.more_cores, feeding.more_threads);
  const int fits = std::min(wanted, threads_that_fit(facts, fed.source, asleep));
  Finding finding;
  finding.claim = fmt::format("The training waits for data {} of the time: {}{}", percent(feeding.starved),
                              feeding.stage.empty() ? "loading" : feeding.stage,
                              fed.source.threads > 0 ? " on " + counted(fed.source.threads, "loader thread")
                                                     : " between steps, on the training thread");
  finding.evidence = {
      part_words(facts, "fetch"),
      fmt::format("{}: {} of the loader's work; a sample takes {:.3g} ms of a thread (loader)", feeding.stage,
                  percent(feeding.share), 1e3 * fed.source.busy_seconds() / static_cast<double>(fed.source.samples))};
  if (const auto own = facts.figure("process.cpu_cores"); own && cores_of(facts)) {
    finding.evidence.push_back(fmt::format("cores: {:.3g} may be used, {:.2f} are (monitor)", *cores_of(facts), *own));
  }
  if (fits > fed.source.threads) {
    const int computing = asleep ? std::max(fed.source.cores, 1) : fits;
    finding.cure = counted(fits, "loader thread");
    finding.option = fmt::format("threads={}", fits);
    finding.gain = predict(facts.periods, loaded_with(fits, computing), kReach);
  } else {
    finding.cure = "no core is free for another loader thread; prepare smaller images once, or use more cores";
    finding.gain =
        predict(facts.periods, [](const Period& each) { return each.part("fetch"); }, {.low = 0.2, .high = 1});
  }
  return finding;
}

}  // namespace

const Rule kInputWait = {
    .id = "input_wait",
    .level = Level::kRun,
    .signal = "share of time that the step waits for a batch; seconds of each stage of the loader",
    .threshold = "waiting 5 % or more, and more than the longest pause",
    .source = "observe/feeding.h: less is normal hand-over",
    .disproof = "more loader threads leave the waiting as it is: then the disk or the network is the limit",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
