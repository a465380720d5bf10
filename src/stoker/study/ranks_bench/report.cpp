// SPDX-License-Identifier: Apache-2.0
// The result of `stoker bench ranks` as text and as JSON.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "stoker/base/counted.h"
#include "stoker/base/fmt.h"
#include "stoker/base/thousands.h"
#include "stoker/study/ranks_bench/ranks_bench.h"

namespace stoker::study {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBar = 30;  // columns

double rate(const RanksBench& bench, int ranks, double step_s) {
  return static_cast<double>(bench.batch) * ranks / step_s;
}

// Of each rank, of the rate that it has alone.
double efficiency(const RanksBench& bench, double step_s) { return bench.measured.front().step_s / step_s; }

std::string bar(double share) {
  return std::string(static_cast<std::size_t>(std::clamp(std::lround(share * kBar), 0L, long{kBar})), '#');
}

std::string row(const RanksBench& bench, int ranks, double step_s, const std::string& note) {
  const double share = efficiency(bench, step_s);
  return fmt::format("{:>6}{:>12.3f} ms{:>13}{:>9.0f} %  {:<{}}  {}\n", thousands(ranks), 1e3 * step_s,
                     thousands(std::llround(rate(bench, ranks, step_s))), 100 * share, bar(share), kBar, note);
}

std::string head() { return fmt::format("{:>6}{:>15}{:>13}{:>11}\n", "ranks", "step", "samples/s", "efficiency"); }

std::string bytes_text(double bytes) {
  const bool mebi = bytes >= (1 << 20), kibi = bytes >= (1 << 10);
  return fmt::format("{:.0f} {}", bytes / (mebi ? 1 << 20 : kibi ? 1 << 10 : 1), mebi ? "MiB" : kibi ? "KiB" : "B");
}

std::string link_text(const Link& link) {
  return fmt::format("latency {:.1f} us ({:.1f} in the message of a step), bandwidth {}", 1e6 * link.latency_s,
                     1e6 * link.exchange_latency_s,
                     std::isfinite(link.bytes_per_s) ? fmt::format("{:.3g} MB/s", 1e-6 * link.bytes_per_s)
                                                     : std::string("not limited"));
}

std::string measured_rows(const RanksBench& bench) {
  std::string text = head();
  for (const MeasuredRanks& each : bench.measured) {
    std::string note;
    if (each.ranks > 1 && bench.link) {
      note = fmt::format("forecast {:.3f} ms",
                         1e3 * forecast(bench.course, *bench.link, Pattern::kRing, each.ranks).seconds);
    }
    if (each.ranks * bench.intra_op > bench.cores) {
      note += fmt::format("; {} of them share {}", each.ranks, counted(bench.cores, "core"));
    }
    text += row(bench, each.ranks, each.step_s, note);
  }
  return text;
}

std::string sums_text(const RanksBench& bench) {
  std::string text;
  for (const MeasuredRanks& each : bench.measured) {
    if (each.sums.empty()) {
      continue;
    }
    text += fmt::format("\nSums over {} ranks: {:>8}{:>15}{:>15}\n", each.ranks, "bytes", "measured", "model");
    for (const TimedSum& sum : each.sums) {
      text += fmt::format("{:>28}{:>12.3f} ms{:>12.3f} ms\n", bytes_text(sum.bytes), 1e3 * sum.seconds,
                          1e3 * sum_cost(*bench.link, Pattern::kRing, each.ranks, sum.bytes).seconds());
    }
  }
  return text + fmt::format("The model: a ring of messages with {}, fitted to {} ranks.\n", link_text(*bench.link),
                            bench.link_ranks);
}

std::string check_text(const RanksBench& bench) {
  std::string text =
      "\nCheck with compute that sleeps, so that ranks do not share cores (forecast from 1 rank and the sums above):\n";
  for (const MeasuredRanks& each : bench.measured) {
    const double told = forecast(bench.sleeping, *bench.link, Pattern::kRing, each.ranks).seconds;
    text += fmt::format("{:>8}: forecast {:.2f} ms, measured {:.2f} ms ({:+.1f} %)\n", counted(each.ranks, "rank"),
                        1e3 * told, 1e3 * each.sleeping_s, 100 * (told / each.sleeping_s - 1));
  }
  return text;
}

std::string forecast_text(const RanksBench& bench) {
  std::string text = fmt::format(
      "\nForecast, a model and no measurement: each rank has {} of its own and {} samples per step; between any two "
      "ranks\n{}{}.\n{}",
      counted(bench.intra_op, "core"), bench.batch, link_text(bench.asked.value_or(*bench.link)),
      bench.asked ? " (asked for)" : " (as measured here)", head());
  for (const Forecast& each : forecasts(bench)) {
    text += row(bench, each.ranks, each.seconds,
                fmt::format("{}, {:.3g} ms of communication, {:.3g} ms of it waited for", name(each.pattern),
                            1e3 * each.communication_s, 1e3 * each.exposed_s));
  }
  return text + "Stoker sums in rings; a tree would need another library than Gloo.\n";
}

Json to_json(const Forecast& each) {
  return {{"ranks", each.ranks},
          {"pattern", name(each.pattern)},
          {"step_seconds", each.seconds},
          {"communication_seconds", each.communication_s},
          {"exposed_seconds", each.exposed_s}};
}

Json to_json(const Link& link) {
  return {{"latency_seconds", link.latency_s},
          {"exchange_latency_seconds", link.exchange_latency_s},
          {"bytes_per_second", std::isfinite(link.bytes_per_s) ? Json(link.bytes_per_s) : Json(nullptr)}};
}

Json to_json(const RanksBench& bench, const MeasuredRanks& each) {
  Json sums = Json::array();
  for (const TimedSum& sum : each.sums) {
    sums.push_back({{"bytes", sum.bytes}, {"seconds", sum.seconds}});
  }
  Json result = {{"ranks", each.ranks},
                 {"step_seconds", each.step_s},
                 {"samples_per_second", rate(bench, each.ranks, each.step_s)},
                 {"sleeping_step_seconds", each.sleeping_s},
                 {"exchange_seconds", each.exchange_s},
                 {"sums", sums}};
  if (bench.link) {
    result["forecast"] = to_json(forecast(bench.course, *bench.link, Pattern::kRing, each.ranks));
    result["sleeping_forecast"] = to_json(forecast(bench.sleeping, *bench.link, Pattern::kRing, each.ranks));
  }
  return result;
}

}  // namespace

std::string ranks_bench_text(const RanksBench& bench) {
  std::string text =
      fmt::format("{}: {}, {} parameters, {} samples per rank, {} per operator; {}{}\n\n", bench.model, bench.text,
                  thousands(bench.parameters), bench.batch, counted(bench.intra_op, "thread"),
                  counted(bench.cores, "core"), bench.device == "cuda" ? "; a GPU per rank" : "");
  if (bench.course.seconds <= 0 || bench.measured.empty() || bench.measured.front().step_s <= 0) {
    return text + "Stopped before anything was measured.\n";
  }
  text += measured_rows(bench);
  if (bench.link) {
    text += sums_text(bench) + check_text(bench) + forecast_text(bench);
  }
  return text + (bench.stopped ? "Stopped early.\n" : "");
}

std::string ranks_bench_json(const RanksBench& bench) {
  Json measured = Json::array(), told = Json::array();
  for (const MeasuredRanks& each : bench.measured) {
    measured.push_back(to_json(bench, each));
  }
  for (const Forecast& each : forecasts(bench)) {
    told.push_back(to_json(each));
  }
  return Json({{"model", bench.model},
               {"parameters", bench.parameters},
               {"batch_per_rank", bench.batch},
               {"device", bench.device},
               {"cores", bench.cores},
               {"intra_op", bench.intra_op},
               {"link", bench.link ? to_json(*bench.link) : Json(nullptr)},
               {"link_ranks", bench.link_ranks},
               {"forecast_link", bench.asked ? to_json(*bench.asked) : Json(nullptr)},
               {"measured", measured},
               {"forecast", told},
               {"stopped", bench.stopped}})
             .dump(2) +
         "\n";
}

}  // namespace stoker::study
