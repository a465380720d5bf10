// SPDX-License-Identifier: Apache-2.0
// What the loader says about threads: the error of its forecasts for more threads, and the number of threads that it
// finds, compared with the best fixed number.
#include <sched.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "measure_cases.h"
#include "small_images.h"
#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/observe/feeding.h"
#include "stoker/study/paired.h"

namespace stoker::bench {
namespace {

using data::Stage;

constexpr double kSearchSeconds = 20;  // for a loader to find its number of threads
constexpr double kRunInSeconds = 1.5;  // five of its windows, after a pause that looks to it like a slow consumer

// Limits threads made from now on to the first `cores` of the cores that the process started with.
void use_cores(int cores) {
  static const cpu_set_t all = [] {
    cpu_set_t begun;
    ::sched_getaffinity(0, sizeof(begun), &begun);
    return begun;
  }();
  cpu_set_t some;
  CPU_ZERO(&some);
  for (int core = 0, taken = 0; core < CPU_SETSIZE && taken < cores; ++core) {
    if (CPU_ISSET(core, &all)) {
      CPU_SET(core, &some);
      ++taken;
    }
  }
  ::sched_setaffinity(0, sizeof(some), &some);
}

core::Batch take(core::BatchSource& source) {
  std::optional<core::Batch> batch = source.next();
  return batch ? std::move(*batch) : std::move(source.next().value());
}

// Samples per second, and the loader's figures for that time.
std::pair<double, core::SourceFigures> run_for(core::BatchSource& source, double seconds, double consumer_ms) {
  for (int i = 0; i < 4; ++i) {  // prepared ahead
    (void)take(source);
  }
  const core::SourceFigures before = source.figures().value();
  const Stopwatch watch;
  std::int64_t samples = 0;
  while (watch.seconds() < seconds) {
    samples += take(source).size();
    if (consumer_ms > 0) {
      sleep_ms(consumer_ms);
    }
  }
  return {static_cast<double>(samples) / watch.seconds(), core::between(before, source.figures().value())};
}

// A load of autotune().
struct Load {
  std::string name;
  bool kept = false;       // images stay decoded
  double read_ms = 0;      // sleep of each read
  double consumer_ms = 0;  // per batch
};
const std::vector<Load> kLoads = {{.name = "cheap", .kept = true},
                                  {.name = "decode"},
                                  {.name = "disk", .read_ms = 10},
                                  {.name = "consumer", .consumer_ms = 30}};

const Load& load_called(const std::string& name) {
  const auto found = std::ranges::find(kLoads, name, &Load::name);
  if (found == kLoads.end()) {
    fail<ConfigError>("bench.loader_bench", "no load \"{}\"; the loads are cheap, decode, disk and consumer", name);
  }
  return *found;
}

data::ImageSplit opened(const Words& words) { return data::open_image_folder(words.text("data"), {.val = 0}).train; }

data::ImageLoaderOptions slow_reads(data::ImageSplit split, double read_ms, int threads, int depth) {
  data::ImageLoaderOptions options = small_images(std::move(split), threads);
  options.depth = depth;
  if (read_ms > 0) {
    options.on_stage = [read_ms](Stage stage, std::int64_t) {
      if (stage == Stage::kRead) {
        sleep_ms(read_ms);
      }
    };
  }
  return options;
}

// A loader that takes part in the turns.
struct Way {
  std::string name;
  std::unique_ptr<data::ImageLoader> loader;
  bool searches = false;
  std::vector<double> rates = {};  // samples per second, one per turn
};

// The fixed ways, and at the end the one that searches. All share one store of decoded images.
std::vector<Way> ways_of(const Load& load, const Words& words) {
  const int cores = static_cast<int>(words.number("cores", 2));
  const data::ImageSplit split = opened(words);
  std::shared_ptr<data::PixelStore> store;
  if (load.kept) {
    store = std::make_shared<data::PixelStore>(split.source->size(), std::int64_t{1} << 30);
  }
  std::vector<Way> ways;
  const auto add = [&](std::string name, int threads, int depth, int may_use) {
    data::ImageLoaderOptions options = slow_reads(split, load.read_ms, threads, depth);
    options.cores = may_use;
    options.store = store;
    ways.push_back({std::move(name), std::make_unique<data::ImageLoader>(std::move(options)), may_use > 0});
  };
  for (const int threads : {1, 2, 4, 8, 16}) {
    if (threads > cores && load.read_ms == 0) {
      continue;  // auto may not use more than the cores
    }
    for (const int depth : {2, 4}) {
      add(fmt::format("{} threads, depth {}", threads, depth), threads, depth, 0);
    }
  }
  add("auto", 1, 0, cores);
  return ways;
}

// One turn of all ways. While one is measured, the threads of the others wait with full queues.
void run_turn(std::vector<Way>& ways, const Load& load, double seconds, bool backwards) {
  for (std::size_t i = 0; i < ways.size(); ++i) {
    Way& way = ways[backwards ? ways.size() - 1 - i : i];
    if (way.searches) {
      (void)run_for(*way.loader, kRunInSeconds, load.consumer_ms);
    }
    way.rates.push_back(run_for(*way.loader, seconds, load.consumer_ms).first);
  }
}

}  // namespace

Json forecast(const Words& words) {
  const auto error = [](double expected, double measured) { return expected / measured - 1; };
  Json figures;
  const double seconds = words.seconds();
  const data::ImageSplit split = opened(words);
  use_cores(1);
  core::SourceFigures spent;
  {
    data::ImageLoader one(small_images(split, 1));
    spent = run_for(one, seconds, 0).second;
  }
  const double two_cores = observe::loader_rate(spent, 2, 2);
  use_cores(2);
  {
    data::ImageLoader two(small_images(split, 2));
    figures["cores_off"] = error(two_cores, run_for(two, seconds, 0).first);
  }
  {
    data::ImageLoader one(slow_reads(split, 10, 1, 4));
    spent = run_for(one, seconds, 0).second;
  }
  {
    data::ImageLoader eight(slow_reads(split, 10, 8, 4));
    figures["sleeping_off"] = error(observe::loader_rate(spent, 8, 2), run_for(eight, seconds, 0).first);
  }
  return figures;
}

// The best fixed way has the highest median. The figure of a turn is the ratio to that way's rate in the same turn.
Json autotune(const Words& words) {
  const Load& load = load_called(words.text("load"));
  std::vector<Way> ways = ways_of(load, words);
  const auto turns = words.number("turns", 5);
  if (turns < 1) {
    fail<ConfigError>("bench.loader_bench", "turns must be at least 1, got {}", turns);
  }
  (void)run_for(*ways.back().loader, kSearchSeconds, load.consumer_ms);
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    run_turn(ways, load, words.seconds(), turn % 2 != 0);
  }
  const Way& found = ways.back();
  const Way& best = *std::max_element(ways.begin(), std::prev(ways.end()), [](const Way& a, const Way& b) {
    return study::median_of(a.rates) < study::median_of(b.rates);
  });
  std::vector<double> shares;
  for (std::size_t turn = 0; turn < found.rates.size(); ++turn) {
    shares.push_back(found.rates[turn] / best.rates[turn]);
  }
  Json medians = Json::object();
  for (const Way& way : ways) {
    medians[way.name] = study::median_of(way.rates);
  }
  return {{"shares", shares},           {"threads", found.loader->figures().value().threads},
          {"way", best.name},           {"auto", medians["auto"]},
          {"best", medians[best.name]}, {"medians", medians}};
}

}  // namespace stoker::bench
