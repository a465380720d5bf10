// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/doctor/rules/script_input.h"

#include <array>
#include <cmath>
#include <map>

#include "stoker/base/bytes_text.h"
#include "stoker/base/counted.h"
#include "stoker/observe/doctor/rules/rule_parts.h"
#include "stoker/observe/feeding.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMostly = 0.5;      // of the loader's work
constexpr double kMuch = 0.2;        // waiting that is worth a word even if only less work would help
constexpr double kIdle = 0.5;        // of the workers' time at work: less, and they are not the limit
constexpr double kBusy = 0.75;       // the same; more, and they may be
constexpr double kAmplified = 8;     // bytes read for each that is delivered
constexpr double kMuchRead = 100e3;  // bytes per sample: less is no time
constexpr double kManyTensors = 50;  // per batch
constexpr double kBound = 2;         // workers may use at most half of the cores that they could fill
constexpr double kHandOver = 1e-3;   // seconds of the training thread per batch from a worker: measured 0.8 to 1.5 ms
constexpr int kMostSleepers = 64;    // workers that wait for a disk or a network

struct Waste {
  std::string_view module, detail, cure;
};
constexpr std::array kWastes = {
    Waste{"pandas", "row access by pandas", "take the columns out of the DataFrame once, as arrays or tensors"},
    Waste{"pyarrow", "row access by pyarrow", "convert the columns to arrays or tensors once"},
    Waste{"json", "parsing JSON", "parse once, and store arrays or tensors"},
    Waste{"csv", "parsing CSV", "parse once, and store arrays or tensors"},
    Waste{"gzip", "decompression", "store the data uncompressed, or in chunks of one sample"},
    Waste{"h5py", "reading HDF5", "chunks of one sample, or a copy as plain arrays"},
};

// What the loader does in all periods.
core::SourceFigures loader_of(const Facts& facts) {
  core::SourceFigures sum;
  for (const Period& period : facts.periods) {
    if (period.loader) {
      core::add(sum, *period.loader);
    }
  }
  return sum;
}

double work_of(const core::SourceFigures& loader, std::string_view stage) {
  const auto found = std::ranges::find(loader.stages, stage, &core::StageFigures::name);
  return found == loader.stages.end() ? 0 : found->seconds;
}

// A worker's time for its samples without waiting for a core.
double needed(const Period& period) {
  const core::StageSums sums = period.loader ? core::sum_of(period.loader->stages) : core::StageSums();
  return sums.cpu_seconds + sums.asleep_seconds;
}

// Waiting for data, with the garbage collector's runs in it: what a loader makes in the training process it also
// visits.
double waited(const Period& period) { return period.part("fetch") + period.part("loader_gc"); }
double waited_share(const Facts& facts) {
  return facts.share("fetch").value_or(0) + facts.share("loader_gc").value_or(0);
}

double computing_in(const Period& period, std::string_view part) {
  const auto found = period.parts.find(part);
  return found == period.parts.end() ? 0 : std::clamp(found->second.cpu_seconds, 0.0, found->second.seconds);
}

// What a change of the loader leads to.
struct Change {
  int workers = 0;      // 0: the training process loads
  int threads = 0;      // of the training's operators; 0: as many as now
  double less = 0;      // of the loader's work
  bool asleep = false;  // the workers mostly wait for a disk or a network
};

// Half of what an operator's other threads spend on a core is spinning until all are ready; the rest is work. With more
// workers that sleep the spinning goes (tests/doctor/cases/slow_storage.py).
constexpr double kSpinning = 0.5;
// It may be less: with a core for a worker, the rest of a GPT's step took 1.77 times as long on one thread, so 0.23
// was spinning (bench/results/doctor-scripts.txt, few_workers). How much more it may be is a choice.
constexpr double kLeastSpinning = 0.2;
constexpr double kMostSpinning = 0.8;

// How much longer the rest of a step takes on fewer threads.
double slower_on(const Facts& facts, int threads, double spinning) {
  const double now = facts.figure("switch.threads").value_or(1);
  const double step = 1 - waited_share(facts);
  if (threads == 0 || threads >= now || step <= 0) {
    return 1;
  }
  const double helping = facts.figure("threads.unnamed.cpu_cores").value_or(0) / step;
  return 1 + (1 - spinning) * std::min(helping, now - 1) * (1 - (threads - 1) / (now - 1));
}

// The step goes on while workers load, until one of both, or the cores, are the limit.
Saving fed_by(const Facts& facts, const Change& change, double spun = kSpinning) {
  const double cores = std::max(cores_of(facts).value_or(1) - busy_elsewhere(facts).value_or(0), 1.0);
  const double spinning = change.asleep ? kSpinning * facts.figure("threads.unnamed.cpu_cores").value_or(0) : 0;
  const double used = facts.figure("process.cpu_cores").value_or(1) - spinning;
  const double slower = slower_on(facts, change.threads, spun);
  const bool has_workers = facts.figure("loader.workers").value_or(0) > 0;
  return [=](const Period& period) {
    // Of the waiting, what the training thread computes: it unpacks what workers sent, and goes on doing so.
    const double unpacking =
        has_workers ? computing_in(period, "fetch") : kHandOver * static_cast<double>(period.steps);
    const double step = slower * (period.seconds - waited(period));
    const double loading = (1 - change.less) * needed(period);
    const double computing = used * period.seconds - change.less * needed(period);
    const double left = change.workers == 0 ? step + std::min(waited(period), loading)
                                            : std::max({step + unpacking, loading / change.workers, computing / cores});
    return std::clamp(period.seconds - left, 0.0, waited(period));
  };
}

// Without a record of calls: the line of the loader that was looked at most.
std::string looked_at_most(const Facts& facts) {
  const bool workers = facts.figure("loader.workers").value_or(0) > 0;
  const Site* most = nullptr;
  for (const Site& site : facts.sites) {
    const bool loading =
        workers ? site.part == "loader.samples" || site.part == "loader.collate" : site.part == "fetch";
    most = loading && !site.where.empty() && (most == nullptr || site.looks > most->looks) ? &site : most;
  }
  return most == nullptr ? "" : fmt::format("{} ({})", most->text, most->where);
}

// The function of the script in which the loader spends most, with the library if one is given, and the share of that
// library, or of that function, in the loader's time.
std::pair<double, std::string> spent_in(const Facts& facts, std::string_view library = {}) {
  std::map<std::string, double> functions;
  double of_library = 0;
  for (const CallShare& call : facts.calls) {
    if (call.part == "loader" && !call.caller.empty() && (library.empty() || call.library == library)) {
      functions[call.caller] += call.share;
      of_library += call.share;
    }
  }
  if (facts.calls.empty() && library.empty()) {
    return {0.0, looked_at_most(facts)};
  }
  const auto most = std::ranges::max_element(functions, {}, [](const auto& each) { return each.second; });
  return most == functions.end() ? std::pair(0.0, std::string())
                                 : std::pair(library.empty() ? most->second : of_library, most->first);
}

std::string loaded_by(int workers) {
  return workers > 0 ? "on " + counted(workers, "worker") : "in the training process (num_workers=0)";
}

std::string in_function(const std::string& name) { return name.empty() ? "" : " in " + name; }

// Something that a cheaper way replaces: removes `share` of the loader's work.
Finding cheaper(const Facts& facts, int workers, double share, const std::string& detail, std::string_view cure) {
  Finding finding;
  finding.claim = detail;
  finding.cure = cure;
  finding.gain = predict(facts.periods, fed_by(facts, {.workers = workers, .less = share}), {.low = 0.8, .high = 1.2});
  return finding;
}

// Operators with several threads wait for all of them, so they suffer most from workers on their cores. 0: all fit.
int threads_beside(const Facts& facts, int workers, int cores, bool asleep) {
  const double training = 1 + facts.figure("threads.unnamed.cpu_cores").value_or(0);
  const int left = std::max(cores - workers, 1);
  const bool fits = asleep || workers + training <= cores || facts.figure("switch.threads").value_or(1) <= left;
  return fits ? 0 : left;
}

// Of those that are within 3 % of the best, the fewest workers.
Change best_change(const Facts& facts, int cores, bool asleep) {
  std::vector<double> speedups;
  for (int workers = 1; workers <= (asleep ? kMostSleepers : cores); ++workers) {
    const Change change{.workers = workers, .threads = threads_beside(facts, workers, cores, asleep), .asleep = asleep};
    speedups.push_back(predict(facts.periods, fed_by(facts, change)).speedup);
  }
  const double best = std::ranges::max(speedups);
  const auto first = std::ranges::find_if(speedups, [&](double each) { return each > 0.97 * best; });
  const int workers = 1 + static_cast<int>(first - speedups.begin());
  return {.workers = workers, .threads = threads_beside(facts, workers, cores, asleep), .asleep = asleep};
}

Finding more_workers(const Facts& facts, const core::SourceFigures& loader, int workers) {
  const core::StageSums sums = core::sum_of(loader.stages);
  const bool asleep = sums.asleep_seconds > kMostly * sums.seconds;
  const Change change = best_change(facts, std::max(static_cast<int>(cores_of(facts).value_or(1)), 1), asleep);
  Finding finding;
  finding.claim = fmt::format("{} {}{}", asleep ? "reading" : "samples are made", loaded_by(workers),
                              in_function(spent_in(facts).second));
  // Workers that sleep do so beside each other: nothing is in their way but the step itself.
  const Reach reach = asleep ? Reach{.low = 0.98, .high = 1.06} : Reach{.low = 0.8, .high = 1.15};
  finding.gain = predict(facts.periods, fed_by(facts, change), reach);
  if (change.threads > 0) {
    finding.gain.low = predict(facts.periods, fed_by(facts, change, kLeastSpinning), reach).low;
    finding.gain.high = predict(facts.periods, fed_by(facts, change, kMostSpinning), reach).high;
  }
  if (change.workers > workers && finding.gain.gain() >= kWorthSaying) {
    finding.cure = counted(change.workers, "worker");
    finding.option = fmt::format("num_workers={}", change.workers);
    if (change.threads > 0) {
      finding.cure += fmt::format(", and {} for the operators of the training", counted(change.threads, "thread"));
      finding.option += fmt::format(", torch.set_num_threads({})", change.threads);
    }
  } else {
    finding.cure = "do less per sample, prepare the data once, or use more cores: more workers do not help on these";
    finding.gain = predict(facts.periods, waited, {.low = 0.2, .high = 0.6});
  }
  return finding;
}

// The loader's part in all periods.
struct Loader {
  explicit Loader(const Facts& facts)
      : share(waited_share(facts)),
        workers(static_cast<int>(facts.figure("loader.workers").value_or(0))),
        figures(loader_of(facts)),
        sums(core::sum_of(figures.stages)) {
    double computing = 0;
    for (const Period& period : facts.periods) {
      computing += computing_in(period, "fetch");
    }
    unpacking = workers > 0 && share > 0 ? computing / (share * facts.seconds()) : 0;
    collating = sums.seconds > 0 ? work_of(figures, "collate") / sums.seconds : 0;
    busy = workers > 0 && facts.seconds() > 0 ? sums.seconds / (workers * facts.seconds()) : 1;
  }

  double share;  // of the time in which the training waits
  int workers;
  core::SourceFigures figures;
  core::StageSums sums;
  double unpacking = 0;  // of the waiting, computing on the training thread
  double collating = 0;  // of the loader's work
  double busy = 1;       // share of the workers' time at work
};

// A whole file or chunk is read for a sample. What it takes to make the sample of it goes, too.
std::optional<Finding> cause_of_reading(const Facts& facts, const Loader& loader) {
  const auto read = facts.figure("loader.read_bytes_per_sample"), batch = facts.figure("loader.bytes_per_batch");
  const auto rows = facts.figure("loader.batch");
  if (!read || !batch || !rows || *rows < 1 || *read < kMuchRead || *read * *rows < kAmplified * *batch) {
    return std::nullopt;
  }
  const double given = *batch / *rows;
  return cheaper(facts, loader.workers, (1 - given / *read) * (1 - loader.collating),
                 fmt::format("each sample reads {} of files to give {}{}", bytes_text(std::llround(*read)),
                             bytes_text(std::llround(given)), in_function(spent_in(facts).second)),
                 "read what a sample needs, and no more: map the file (numpy.load(..., mmap_mode='r')), chunks of one "
                 "sample, or pictures that were made smaller once");
}

// Workers inherit the core to which a library has bound the training thread, or bind themselves.
std::optional<Finding> cause_of_binding(const Facts& facts, const Loader& loader) {
  const auto own = facts.figure("loader.cores"), start = facts.figure("process.start_cores");
  if (!own || !start || kBound * *own > std::min<double>(loader.workers, *start)) {
    return std::nullopt;
  }
  Finding finding;
  finding.claim = fmt::format("its {} may use {:.0f} of the {:.0f} cores that the program started with",
                              counted(loader.workers, "worker"), *own, *start);
  finding.cure =
      "os.sched_setaffinity() in worker_init_fn with the cores of the program's start, or no OMP_PROC_BIND, "
      "GOMP_CPU_AFFINITY or KMP_AFFINITY: workers inherit the core to which these bind the training thread";
  // Three networks on two cores saved 0.35 to 0.6 of it (bench/results/doctor-scripts.txt).
  finding.gain = predict(facts.periods, fed_by(facts, {.workers = loader.workers}), {.low = 0.3, .high = 0.9});
  return finding;
}

// Causes in the work of the loader.
std::vector<Finding> causes_of_work(const Facts& facts, const Loader& loader) {
  std::vector<Finding> causes;
  if (std::optional<Finding> bound = cause_of_binding(facts, loader)) {
    causes.push_back(std::move(*bound));
  } else if (Finding more = more_workers(facts, loader.figures, loader.workers);
             !more.option.empty() || (loader.share > kMuch && loader.busy > kBusy)) {
    causes.push_back(std::move(more));
  }
  for (const Waste& waste : kWastes) {
    const auto [of_work, function] = spent_in(facts, waste.module);
    if (of_work > kMostly) {
      causes.push_back(cheaper(facts, loader.workers, std::min(of_work, 1.0),
                               std::string(waste.detail) + in_function(function), waste.cure));
    }
  }
  if (std::optional<Finding> reading = cause_of_reading(facts, loader)) {
    causes.push_back(std::move(*reading));
  }
  if (loader.collating > kMostly) {
    causes.push_back(cheaper(facts, loader.workers, 0.9 * loader.collating,
                             "collate makes the batch" + in_function(spent_in(facts).second),
                             "stack arrays first and make one tensor of them: torch.from_numpy(numpy.stack(list))"));
  }
  return causes;
}

// The batch is ready, and the training thread needs long to take it over.
std::optional<Finding> cause_of_hand_over(const Facts& facts, const Loader& loader) {
  const double tensors = facts.figure("loader.tensors_per_batch").value_or(0);
  if (loader.unpacking < kMostly || tensors < kManyTensors) {
    return std::nullopt;
  }
  Finding finding;
  finding.claim = fmt::format("{:.0f} tensors per batch go from worker to training one by one", tensors);
  finding.cure = "fewer, larger tensors per batch: stack them in collate_fn";
  finding.gain = predict(facts.periods, part_of_time("fetch"), {.low = 1, .high = 1.2});
  return finding;
}

std::vector<std::string> evidence_of(const Facts& facts, const Loader& loader) {
  std::vector<std::string> evidence = {part_words(facts, "fetch")};
  if (loader.figures.samples > 0) {
    evidence.push_back(fmt::format("a sample takes {:.3g} ms of a worker, {} of it computing, {} collate (loader)",
                                   1e3 * loader.sums.seconds / static_cast<double>(loader.figures.samples),
                                   percent(loader.sums.cpu_seconds / loader.sums.seconds), percent(loader.collating)));
  }
  if (const auto own = facts.figure("process.cpu_cores"); own && cores_of(facts)) {
    evidence.push_back(fmt::format("cores: {:.3g} may be used, {:.2f} are (monitor)", *cores_of(facts), *own));
  }
  if (const std::string_view where = facts.word("loader.where"); !where.empty()) {
    evidence.push_back(fmt::format("the DataLoader is made at {}", where));
  }
  return evidence;
}

}  // namespace

Judgement judge_script_input(const Facts& facts) {
  const Loader loader(facts);
  if (loader.share < kStarved) {
    return Healthy{};
  }
  if (loader.sums.seconds <= 0) {
    return Abstained{"what the loader's workers did"};
  }
  std::vector<Finding> causes;
  if (loader.busy >= kIdle) {  // else the workers wait, too
    causes = causes_of_work(facts, loader);
  }
  if (std::optional<Finding> hand_over = cause_of_hand_over(facts, loader)) {
    causes.push_back(std::move(*hand_over));
  }
  if (causes.empty()) {
    return Healthy{};  // a little waiting, and nothing that would change it
  }
  Finding& best = *std::ranges::max_element(causes, {}, [](const Finding& each) { return each.gain.speedup; });
  best.claim = fmt::format("The training waits for data {} of the time: {}", percent(loader.share), best.claim);
  best.in_host = true;
  best.evidence = evidence_of(facts, loader);
  return std::move(best);
}

}  // namespace stoker::observe::doctor
