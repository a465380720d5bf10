// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/straggler.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "stoker/base/counted.h"
#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/base/thousands.h"

namespace stoker::observe {
namespace {

using core::RankTime;
using Cause = Straggler::Cause;
using Time = double RankTime::*;

constexpr std::size_t kMostRows = 16;

// What a rank does of its own.
struct Work {
  Cause cause;
  Time time;
  const char* brief;
  const char* words;
};
constexpr std::array kWorks{Work{Cause::kData, &RankTime::data, "data", "it waits for data"},
                            Work{Cause::kSaving, &RankTime::saving, "checkpoints", "it saves checkpoints"},
                            Work{Cause::kCompute, &RankTime::computed, "compute", "it computes"}};
constexpr Work kNoCore{Cause::kHost, &RankTime::delayed, "host", "its thread waits for a core"};

std::string ms(double seconds) {
  const double value = seconds * 1e3;
  return seconds < 0     ? "-"
         : value < 5e-4  ? "0"
         : value >= 1000 ? thousands(static_cast<std::int64_t>(value + 0.5))
                         : fmt::format("{:.3g}", value);
}

std::string name_of(const core::RankTimes& times, std::size_t rank) {
  return rank < times.hosts.size() && !times.hosts[rank].empty()
             ? fmt::format("rank {} on {}", rank, printable(times.hosts[rank]))
             : fmt::format("rank {}", rank);
}

// The upper one of two in the middle.
double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Of the ranks but one; -1: one of them does not know.
double median_of_others(const std::vector<RankTime>& ranks, std::size_t rank, Time time) {
  std::vector<double> others;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i != rank) {
      others.push_back(ranks[i].*time);
    }
  }
  return std::ranges::min(others) < 0 ? -1 : median(std::move(others));
}

// How much more of it the slowest rank has than the others; -1: unknown.
double excess(const core::RankTimes& times, std::size_t slowest, Time time) {
  const double usual = median_of_others(times.ranks, slowest, time), own = times.ranks[slowest].*time;
  return own < 0 || usual < 0 ? -1 : own - usual;
}

// The want of a core is in the time of what the rank does then, so it is looked at first.
void explain_slowest(const core::RankTimes& times, std::size_t slowest, Straggler& found) {
  const auto steps = static_cast<double>(times.steps);
  const Work* most = excess(times, slowest, kNoCore.time) >= found.late * steps / 2 ? &kNoCore : nullptr;
  double extra = 0;
  for (const Work& work : kWorks) {
    if (const double more = excess(times, slowest, work.time); most != &kNoCore && more > extra) {
      most = &work;
      extra = more;
    }
  }
  std::string why;
  if (most != nullptr) {
    found.cause = most->cause;
    why = fmt::format("{} {} ms a step, others {} ms; ", most->words, ms(times.ranks[slowest].*most->time / steps),
                      ms(median_of_others(times.ranks, slowest, most->time) / steps));
  }
  found.rank = static_cast<int>(slowest);
  found.brief =
      fmt::format("slowest rank {}{}{}", slowest, most != nullptr ? ", " : "", most != nullptr ? most->brief : "");
  found.words = fmt::format("{} is slowest: {}others wait {} ms a step for it ({:.0f} % of the time)",
                            name_of(times, slowest), why, ms(found.late), 100 * found.share);
}

// Megabytes a second.
std::string rate_text(double rate) {
  const double value = rate / 1e6;
  return value >= 1000 ? thousands(static_cast<std::int64_t>(value + 0.5)) : fmt::format("{:.3g}", value);
}

// "; 5 MB of gradients a step in 2 buckets, at 850 to 1,200 MB/s" of the buckets whose time is known.
std::string buckets_text(const core::RankTimes& times) {
  std::int64_t bytes = 0;
  double least = -1, most = -1;
  for (const core::BucketTime& each : times.buckets) {
    bytes += each.bytes;
    if (each.steps > 0 && each.seconds > 0) {
      const double rate = static_cast<double>(each.bytes) * static_cast<double>(each.steps) / each.seconds;
      least = least < 0 ? rate : std::min(least, rate);
      most = std::max(most, rate);
    }
  }
  if (bytes == 0) {
    return "";
  }
  std::string text = fmt::format("; {:.3g} MB of gradients a step in {}", static_cast<double>(bytes) / 1e6,
                                 counted(static_cast<std::int64_t>(times.buckets.size()), "bucket"));
  if (most > 0) {
    text += least < most ? fmt::format(", at {} to {} MB/s", rate_text(least), rate_text(most))
                         : fmt::format(", at {} MB/s", rate_text(most));
  }
  return text;
}

}  // namespace

Straggler find_straggler(const core::RankTimes& times) {
  Straggler found;
  if (times.steps <= 0 || times.seconds <= 0 || times.ranks.size() < 2) {
    return found;
  }
  std::vector<double> waited;
  for (const RankTime& each : times.ranks) {
    waited.push_back(each.waited);
  }
  const auto slowest = static_cast<std::size_t>(std::ranges::min_element(waited) - waited.begin());
  const auto steps = static_cast<double>(times.steps);
  const double late = median(waited) - waited[slowest];
  found.late = late / steps;
  found.share = late / times.seconds;
  if (found.share >= kClearlySlower) {
    explain_slowest(times, slowest, found);
  } else if (times.exposed >= kMuchExposed * times.seconds) {
    found.cause = Cause::kNetwork;
    found.late = times.exposed / steps;
    found.share = times.exposed / times.seconds;
    found.brief = fmt::format("exchanges {:.0f}%", 100 * found.share);
    found.words = fmt::format("exchanges between ranks that nothing hides take {} ms a step ({:.0f} % of the time)",
                              ms(found.late), 100 * found.share);
  }
  return found;
}

Straggler StragglerWatch::look(const core::RankTimes& period) {
  Straggler now = find_straggler(period);
  const bool again = now.cause != Cause::kNone && now.cause == before_.cause && now.rank == before_.rank;
  before_ = now;
  return again ? now : Straggler();
}

std::string ranks_text(const core::RankTimes& whole) {
  if (whole.steps <= 0 || whole.seconds <= 0) {
    return "";
  }
  std::vector<std::size_t> shown(whole.ranks.size());
  std::iota(shown.begin(), shown.end(), std::size_t{0});
  if (shown.size() > kMostRows) {
    std::ranges::stable_sort(shown, {}, [&](std::size_t rank) { return whole.ranks[rank].waited; });
    shown.resize(kMostRows);
  }
  std::vector<std::string> names;
  std::size_t width = std::string_view("ms a step").size();
  for (const std::size_t rank : shown) {
    names.push_back(name_of(whole, rank));
    width = std::max(width, names.back().size());
  }
  std::string text = fmt::format(
      "{} ranks: {}; {:.1f} % of the time in exchanges that nothing hid{}\n  {:<{}} {:>9} {:>9} {:>9} {:>9} {:>18}",
      whole.ranks.size(), counted(whole.steps, "step"), 100 * whole.exposed / whole.seconds, buckets_text(whole),
      "ms a step", width, "computing", "data", "saving", "no core", "waiting for others");
  const auto of_step = [&](double seconds) {
    return seconds < 0 ? "-" : ms(seconds / static_cast<double>(whole.steps));
  };
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const RankTime& each = whole.ranks[shown[i]];
    text += fmt::format("\n  {:<{}} {:>9} {:>9} {:>9} {:>9} {:>18}", names[i], width, of_step(each.computed),
                        of_step(each.data), of_step(each.saving), of_step(each.delayed), of_step(each.waited));
  }
  return shown.size() < whole.ranks.size()
             ? text + fmt::format("\n  and {} more, which waited longer", whole.ranks.size() - shown.size())
             : text;
}

}  // namespace stoker::observe
