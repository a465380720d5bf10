// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/feeding.h"

#include <algorithm>
#include <cmath>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/base/thousands.h"

namespace stoker::observe {
namespace {

constexpr double kAtWork = 0.7;     // of the time; a station that works less is waiting for others
constexpr double kSlowSample = 20;  // times the mean
constexpr double kAsleep = 0.5;     // of the loader's time; above that it needs threads, not cores
constexpr int kMostAdvice = 1024;   // threads or cores; more is not useful advice

// The longest stage and its share of the total.
void name_longest(const std::vector<core::StageFigures>& stages, Feeding& feeding) {
  const auto longest = std::ranges::max_element(stages, {}, &core::StageFigures::seconds);
  if (longest != stages.end() && longest->seconds > 0) {
    feeding.stage = longest->name;
    feeding.share = longest->seconds / core::sum_of(stages).seconds;
  }
}

// The share of the time of the longest activity other than the step: logging, a checkpoint, an evaluation. Waiting for
// the device counts as step, since the device computes steps then.
double longest_pause(const core::Fed& figures) {
  double longest = 0;
  for (const core::StageFigures& each : figures.consumer) {
    longest = each.name == "step" || each.name == "device wait" ? longest : std::max(longest, each.seconds);
  }
  return longest / figures.seconds;
}

// Share of the time that the loader's threads work, or its cores if there are more threads than cores.
double at_work(const core::SourceFigures& source, double seconds) {
  const core::StageSums spent = core::sum_of(source.stages);
  const int threads = source.threads > 0 ? source.threads : std::max(source.cores, 1);
  const double cores = source.cores > 0 ? spent.cpu_seconds / source.cores : 0;
  return std::min(std::max(spent.seconds / threads, cores) / seconds, 1.0);
}

bool one_sample(const core::Fed& figures, double loader) {
  const core::SourceFigures& source = figures.source;
  const double mean = source.samples > 0 ? source.busy_seconds() / static_cast<double>(source.samples) : 0;
  return source.threads > 1 && loader < kAtWork && source.slowest_seconds > kSlowSample * mean;
}

// The number of additional threads or cores that the loader needs to feed the consumer, and the predicted rate.
void advise(const core::Fed& figures, Feeding& feeding) {
  const core::SourceFigures& source = figures.source;
  const auto samples = static_cast<double>(source.samples);
  if (samples <= 0 || source.busy_seconds() <= 0) {
    return;
  }
  const double each = source.busy_seconds() / samples;
  const int threads = std::max(source.threads, 1);
  const double wanted = feeding.fed > 0 ? feeding.fed : 2 * feeding.rate;  // if unknown: twice the rate
  const auto needed = [](double rate, double seconds) {
    return static_cast<int>(std::clamp(std::ceil(rate * seconds - 0.05), 1.0, static_cast<double>(kMostAdvice)));
  };
  const int cores = source.cores > 0 ? std::min(source.cores, threads) : threads;
  const core::StageSums spent = core::sum_of(source.stages);
  const bool asleep = spent.asleep_seconds > kAsleep * spent.seconds;
  // If the consumer loads by itself, an additional core is the first one of a loader.
  const int now = source.threads == 0 ? 0 : asleep ? threads : cores;
  const int more = std::max(needed(wanted, each) - now, 0);
  (asleep ? feeding.more_threads : feeding.more_cores) = more;
  const double loaded = loader_rate(source, std::max(threads, now + more), asleep ? cores : now + more);
  feeding.predicted = feeding.fed > 0 ? std::min(loaded, feeding.fed) : loaded;
}

std::string advice(const Feeding& feeding) {
  const bool cores = feeding.more_cores > 0;
  const int more = cores ? feeding.more_cores : feeding.more_threads;
  if (more == 0) {
    return "";
  }
  return fmt::format("; with {} more {}{} the loader would reach {} samples/s", more, cores ? "core" : "loader thread",
                     more == 1 ? "" : "s", thousands(std::llround(feeding.predicted)));
}

}  // namespace

double loader_rate(const core::SourceFigures& source, int threads, int cores) {
  const core::StageSums spent = core::sum_of(source.stages);
  if (source.samples <= 0 || spent.seconds <= 0) {
    return 0;
  }
  const auto samples = static_cast<double>(source.samples);
  return std::min(threads * samples / spent.seconds,
                  spent.cpu_seconds > 0 ? cores * samples / spent.cpu_seconds : INFINITY);
}

Feeding explain(const core::Fed& figures) {
  const core::SourceFigures& source = figures.source;
  Feeding feeding;
  if (figures.seconds <= 0) {
    return feeding;
  }
  feeding.starved = std::clamp(figures.waited_seconds / figures.seconds, 0.0, 1.0);
  feeding.rate = static_cast<double>(source.samples) / figures.seconds;
  const double taking = figures.seconds - figures.waited_seconds;
  feeding.fed = taking > 1e-3 * figures.seconds ? static_cast<double>(source.samples) / taking : 0;
  if (feeding.starved < std::max(kStarved, longest_pause(figures))) {
    name_longest(figures.consumer, feeding);
    feeding.words = fmt::format("data is {} late (waiting {:.1f} % of the time)",
                                feeding.starved < kStarved ? "never" : "sometimes", 100 * feeding.starved);
    if (!feeding.stage.empty()) {
      feeding.words += fmt::format("; {} takes {:.0f} %", feeding.stage, 100 * feeding.share);
    }
    return feeding;
  }
  const double loader = at_work(source, figures.seconds);
  const double copy = source.copy_seconds / figures.seconds;
  feeding.late = true;
  const std::string starved = fmt::format("data-starved {:.0f} %: ", 100 * feeding.starved);
  if (copy > loader) {
    feeding.stage = "copy";
    feeding.share = 1;
    feeding.words = fmt::format("{}copying to the device takes {:.0f} % of the time", starved, 100 * copy);
  } else if (one_sample(figures, loader)) {
    feeding.stage = "one sample";
    feeding.share = source.slowest_seconds / figures.seconds;
    feeding.words = fmt::format("{}one sample took {:.2g} s and delayed all batches: {}", starved,
                                source.slowest_seconds, printable(source.slowest));
  } else {
    name_longest(source.stages, feeding);
    advise(figures, feeding);
    feeding.words = starved + (feeding.stage.empty() ? "loading" : feeding.stage) + advice(feeding);
  }
  return feeding;
}

}  // namespace stoker::observe
