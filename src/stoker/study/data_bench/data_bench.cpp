// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/data_bench/data_bench.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "stoker/base/clock.h"
#include "stoker/base/counted.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/base/thousands.h"
#include "stoker/device/cpu_quota.h"
#include "stoker/job/opened_data.h"
#include "stoker/observe/feeding.h"

namespace stoker::study {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kCache = "cache";  // of decoded images; off, or it would be measured instead of the files
constexpr int kFirst = 4;                // batches before the measurement; more than the loader prefetches
constexpr int kBar = 30;                 // columns
constexpr double kSearching = 3;         // times as long, since auto first has to find its number of threads

// The next batch, across ends of epochs.
std::int64_t take(core::BatchSource& source) {
  for (int ends = 0; ends < 2; ++ends) {
    if (const std::optional<core::Batch> batch = source.next()) {
      return batch->size();
    }
  }
  fail<DataError>("study.data", "the training split has too few samples for one batch; set a smaller batch=");
}

DataWay measure(const tasks::ReadyTask& task, const train::Plan& plan, const DataBenchOptions& options, int threads,
                int cores, double seconds) {
  tasks::BatchRequest request;
  request.batch = plan.batch;
  request.seed = static_cast<std::uint64_t>(plan.seed);
  request.drop_tail = plan.tail == "drop";
  request.threads = threads;
  request.cores = cores;
  const auto source = task.training_batches(request);
  for (int i = 0; i < kFirst && !options.stop(); ++i) {
    (void)take(*source);
  }
  const core::SourceFigures before = source->figures().value_or(core::SourceFigures{});
  const double cpu_before = process_cpu_s();
  const Stopwatch watch;
  std::int64_t samples = 0;
  while ((watch.seconds() < seconds || samples == 0) && !options.stop()) {
    samples += take(*source);
  }
  DataWay way;
  const double wall = watch.seconds();
  way.rate = static_cast<double>(samples) / wall;
  way.cpu_ms = 1e3 * (process_cpu_s() - cpu_before) / static_cast<double>(std::max<std::int64_t>(samples, 1));
  way.spent = core::between(before, source->figures().value_or(core::SourceFigures{}));
  way.threads = source->figures() ? way.spent.threads : threads;
  way.name = counted(way.threads, "thread");
  return way;
}

std::string stage_rows(const core::SourceFigures& spent) {
  const double all = spent.busy_seconds();
  if (all <= 0) {
    return "";
  }
  std::string text;
  for (const core::StageFigures& stage : spent.stages) {
    const double share = stage.seconds / all;
    if (share < 0.001) {
      continue;
    }
    const double asleep = 1 - stage.cpu_seconds() / stage.seconds;
    text += fmt::format("  {:<12}{:>9.3f} ms {:>4.0f} %  {}{}\n", stage.name,
                        1e3 * stage.seconds / static_cast<double>(std::max<std::int64_t>(spent.samples, 1)),
                        100 * share, std::string(static_cast<std::size_t>(std::lround(share * kBar)), '#'),
                        asleep > 0.2 ? fmt::format("  ({:.0f} % of it waiting)", 100 * asleep) : "");
  }
  return text;
}

// The way with the highest rate.
const DataWay& best_of(const DataBench& bench) { return *std::ranges::max_element(bench.ways, {}, &DataWay::rate); }

Json to_json(const DataWay& way) {
  Json stages = Json::object();
  for (const core::StageFigures& stage : way.spent.stages) {
    stages[stage.name] = {{"seconds", stage.seconds}, {"cpu_seconds", stage.cpu_seconds()}};
  }
  return {{"name", way.name},
          {"threads", way.threads},
          {"samples_per_second", way.rate},
          {"cpu_ms", way.cpu_ms},
          {"samples", way.spent.samples},
          {"stages", stages},
          {"slowest", {{"name", printable(way.spent.slowest)}, {"seconds", way.spent.slowest_seconds}}}};
}

}  // namespace

DataBench bench_data(const DataBenchOptions& options) {
  job::OpenedData opened = job::open_data(options.request, nullptr, options.say);
  const train::Plan& plan = opened.plan;
  if (plan.own.contains(kCache) && options.request.options.find(kCache) == nullptr) {
    opened.plan.own[kCache] = "0";
  }
  const std::unique_ptr<tasks::ReadyTask> task = job::settle(opened);
  DataBench bench;
  bench.data = options.request.data.native();
  bench.task = task->describe();
  bench.samples = task->size(tasks::Split::kTrain);
  bench.batch = plan.batch;
  bench.cores = device::cpu_quota().cores;
  const auto add = [&](int threads, int cores, double seconds, const std::string& name) {
    if (options.stop()) {
      return;
    }
    options.say(fmt::format("measuring {} ...", name));
    const DataWay way = measure(*task, plan, options, threads, cores, seconds);
    if (way.rate > 0) {  // otherwise it was stopped before the first batch
      bench.ways.push_back(way);
      bench.ways.back().name = (cores > 0 ? "auto: " : "") + way.name;
    }
  };
  add(1, 0, options.seconds, "1 thread");
  const bool in_memory = task->load_time_per_sample().seconds == 0;  // such a source has no loader threads
  if (!in_memory) {
    std::set<int> fixed = {bench.cores};
    if (options.request.options.find("threads") != nullptr) {
      fixed.insert(static_cast<int>(plan.threads));
    }
    for (const int threads : fixed) {
      if (threads > 1) {
        add(threads, 0, options.seconds, counted(threads, "thread"));
      }
    }
    add(1, bench.cores, kSearching * options.seconds, "auto, which finds the best number of threads");
  }
  bench.stopped = options.stop();
  return bench;
}

std::string data_bench_text(const DataBench& bench) {
  std::string text = fmt::format("{}: {}, {} for training, batches of {}\n\n", printable(bench.data), bench.task,
                                 counted(bench.samples, "sample"), bench.batch);
  if (bench.ways.empty()) {
    return text + "Stopped before anything was measured.\n";
  }
  text += fmt::format("{:<20}{:>12}{:>22}\n", "loader", "samples/s", "CPU time per sample");
  for (const DataWay& way : bench.ways) {
    text += fmt::format("{:<20}{:>12}{:>19.3f} ms\n", way.name, thousands(std::llround(way.rate)), way.cpu_ms);
  }
  const DataWay& best = best_of(bench);
  if (!best.spent.stages.empty()) {
    text += fmt::format("\nTime per sample by stage ({}):\n{}", best.name, stage_rows(best.spent));
    const core::SourceFigures& alone = bench.ways.front().spent;
    text += "\nForecast for more cores:";
    for (int cores = std::max(bench.cores, 1) * 2, i = 0; i < 3; ++i, cores *= 2) {
      text += fmt::format("{} {} cores {} samples/s", i == 0 ? "" : ",", cores,
                          thousands(std::llround(observe::loader_rate(alone, cores, cores))));
    }
    text += "\n";
  }
  text += fmt::format("\nA step of {} samples that takes less than {:.3g} ms waits for data on this machine ({}).\n",
                      bench.batch, 1e3 * static_cast<double>(bench.batch) / best.rate, best.name);
  return text + (bench.stopped ? "Stopped early.\n" : "");
}

std::string data_bench_json(const DataBench& bench) {
  Json ways = Json::array();
  for (const DataWay& way : bench.ways) {
    ways.push_back(to_json(way));
  }
  return Json({{"data", printable(bench.data)},
               {"task", printable(bench.task)},
               {"samples", bench.samples},
               {"batch", bench.batch},
               {"cores", bench.cores},
               {"stopped", bench.stopped},
               {"ways", ways}})
             .dump(2) +
         "\n";
}

}  // namespace stoker::study
