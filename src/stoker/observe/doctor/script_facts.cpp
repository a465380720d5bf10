// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/doctor/script_facts.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "stoker/base/counted.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/json_depth.h"
#include "stoker/base/json_fields.h"
#include "stoker/observe/doctor/burst.h"
#include "stoker/observe/doctor/mean_figures.h"
#include "stoker/observe/doctor/script_process.h"

namespace stoker::observe::doctor {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kWarmPeriods = 2;
constexpr std::int64_t kWarmSteps = 3;
constexpr std::size_t kFewPoints = 4;  // of a line
// Seconds in which a worker fills its own memory, and its first garbage collections write to all objects that it
// shares: 75 MB in one second, and 0.04 MB per second then (tests/doctor/cases/many_tensors.py, a GPT).
constexpr double kSettled = 2;

// The records of a folder, one file per process. The machine's are in monitor.jsonl.
std::vector<ScriptProcess> read_processes(const std::filesystem::path& folder) {
  std::vector<ScriptProcess> processes;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() == ".jsonl" && path.filename() != kMonitorFile && entry.is_regular_file(error)) {
      std::ifstream file(path);
      processes.push_back(read_script_process(file));
    }
  }
  std::ranges::sort(processes, {}, &ScriptProcess::pid);
  return processes;
}

std::int64_t steps_of(const ScriptProcess& process) {
  return process.periods.empty() ? 0 : process.periods.back().period.last_step;
}

// One with an optimizer before one without, and then the one with the most steps.
const ScriptProcess* trainer_of(const std::vector<ScriptProcess>& processes) {
  const ScriptProcess* best = nullptr;
  for (const ScriptProcess& each : processes) {
    const auto rank = [](const ScriptProcess& of) { return std::pair(of.trains, steps_of(of)); };
    if (steps_of(each) > 0 && (best == nullptr || rank(each) > rank(*best))) {
      best = &each;
    }
  }
  return best;
}

// What a process that loads did between two of its records, spread over the periods that it overlaps.
void add_loading(const std::vector<Loading>& records, const ScriptProcess& trainer, std::vector<Period>& periods,
                 std::size_t first) {
  for (std::size_t i = 1; i < records.size(); ++i) {
    const Loading &before = records[i - 1], &now = records[i];
    const double length = now.at - before.at;
    const auto from_here = std::ranges::partition_point(
        trainer.periods, [&](const ScriptPeriod& each) { return each.begin + each.period.seconds <= before.at; });
    const auto skipped = static_cast<std::size_t>(from_here - trainer.periods.begin());
    for (std::size_t p = std::max(skipped, first) - first; p < periods.size() && length > 0; ++p) {
      const double begin = trainer.periods[p + first].begin;
      const double both = std::min(now.at, begin + periods[p].seconds) - std::max(before.at, begin);
      if (both <= 0) {
        break;  // later periods begin later
      }
      const double share = both / length;
      core::SourceFigures from, piece;
      from.stages = before.stages;
      core::SourceFigures until = from;
      until.stages = now.stages;
      piece.threads = trainer.workers();
      piece.samples = std::llround(share * static_cast<double>(now.samples - before.samples));
      for (const core::StageFigures& stage : core::between(from, std::move(until)).stages) {
        piece.stages.push_back({.name = stage.name,
                                .seconds = share * stage.seconds,
                                .probed_seconds = share * stage.probed_seconds,
                                .probed_cpu_seconds = share * stage.probed_cpu_seconds,
                                .probed_asleep_seconds = share * stage.probed_asleep_seconds});
      }
      periods[p].loader ? core::add(*periods[p].loader, piece) : void(periods[p].loader = piece);
    }
  }
}

// What the processes that load read for a sample.
void add_reading(const std::vector<const ScriptProcess*>& processes, Facts& facts) {
  double bytes = 0, samples = 0;
  for (const ScriptProcess* each : processes) {
    bytes += each->loading.empty() ? 0 : each->loading.back().read_bytes;
    samples += each->loading.empty() ? 0 : static_cast<double>(each->loading.back().samples);
  }
  if (bytes > 0 && samples > 0) {
    facts.figures["loader.read_bytes_per_sample"] = {bytes / samples, "script"};
  }
}

// Cores on which workers may load, each counted once.
void add_cores(const std::vector<ScriptProcess>& processes, int trainer, Facts& facts) {
  std::set<double> cores;
  for (const ScriptProcess& each : processes) {
    if (each.worker >= 0 && each.parent == trainer) {
      cores.insert(each.cores.begin(), each.cores.end());
    }
  }
  if (!cores.empty()) {
    facts.figures["loader.cores"] = {static_cast<double>(cores.size()), "script"};
  }
}

void add_worker(const ScriptProcess& process, Facts& facts) {
  if (process.worker < 0 || process.loading.empty()) {
    return;
  }
  facts.figures["loader.threads_per_worker"] = {process.threads, "script"};
  std::vector<double> rates;  // from the middle of its life
  for (std::size_t i = process.loading.size() / 2 + 1; i < process.loading.size(); ++i) {
    const Loading &before = process.loading[i - 1], &now = process.loading[i];
    const bool settled = before.at - process.loading.front().at >= kSettled;
    if (settled && now.at > before.at && before.private_bytes > 0) {
      const double copied = std::min(now.private_bytes - before.private_bytes, before.shared_bytes - now.shared_bytes);
      rates.push_back(std::max(copied, 0.0) / (now.at - before.at));
    }
  }
  if (rates.size() >= kFewPoints) {
    const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
    std::ranges::nth_element(rates, middle);  // a run of the garbage collector writes to many pages, once
    Figure& copied = facts.figures["loader.copied_bytes_per_second"];
    copied = {std::max(copied.value, *middle), "script"};
    Figure& size = facts.figures["loader.private_bytes"];
    size = {std::max(size.value, process.loading.back().private_bytes), "script"};
  }
}

// The slope of the resident memory over the steps (least squares).
void add_growth(const ScriptProcess& trainer, Facts& facts) {
  std::vector<std::pair<double, double>> points;
  for (std::size_t i = trainer.periods.size() / 4; i < trainer.periods.size(); ++i) {
    points.emplace_back(static_cast<double>(trainer.periods[i].period.last_step), trainer.periods[i].resident_bytes);
  }
  if (points.size() < kFewPoints) {
    return;
  }
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [step, bytes] : points) {
    x += step / static_cast<double>(points.size());
    y += bytes / static_cast<double>(points.size());
  }
  for (const auto& [step, bytes] : points) {
    xx += (step - x) * (step - x);
    xy += (step - x) * (bytes - y);
  }
  facts.figures["process.resident_bytes_per_step"] = {xx > 0 ? xy / xx : 0, "script"};
}

// Page faults of the thread that trains, and the share of its time that they take, in the middle period. Memory by
// which the process grows is left out, batches that workers give to it, and periods after a fork, which copies what is
// written.
void add_page_faults(const ScriptProcess& trainer, std::size_t first, Facts& facts) {
  const auto known = [&](std::string_view name) {
    const auto found = trainer.figures.find(name);
    return found == trainer.figures.end() ? 0 : std::max(found->second, 0.0);
  };
  const double cost = known("page_fault.seconds"), bytes = known("page_fault.bytes");
  const double shared = trainer.workers() > 0 ? known("loader.bytes_per_batch") : 0;
  std::vector<std::pair<double, double>> periods;  // share of the time, faults per step
  for (std::size_t i = std::max<std::size_t>(first, 1); i < trainer.periods.size() && bytes > 0; ++i) {
    const ScriptPeriod &before = trainer.periods[i - 1], &each = trainer.periods[i];
    if (each.page_faults >= 0 && before.forks == 0 && each.forks == 0) {
      const auto steps = static_cast<double>(each.period.steps);
      const double other = std::max(each.resident_bytes - before.resident_bytes, 0.0) + steps * shared;
      const double faults = std::max(each.page_faults - other / bytes, 0.0);
      const double in_kernel = each.system_seconds * faults / std::max(each.page_faults, 1.0);
      periods.emplace_back(std::min(in_kernel, cost * faults) / each.period.seconds, faults / steps);
    }
  }
  if (periods.size() >= kFewPoints) {
    const auto middle = periods.begin() + static_cast<std::ptrdiff_t>(periods.size() / 2);
    std::ranges::nth_element(periods, middle);
    facts.figures["process.page_fault_share"] = {middle->first, "script"};
    facts.figures["process.page_faults_per_step"] = {middle->second, "script"};
  }
}

// Workers of one loader whose first batches are the same, although a worker's batches differ. 1 if only some are: then
// the data holds the same samples more than once.
void add_same_batches(const std::vector<ScriptProcess>& processes, int trainer, Facts& facts) {
  std::map<std::vector<double>, std::set<int>> workers;  // by their first batches
  for (const ScriptProcess& each : processes) {
    if (each.worker >= 0 && each.parent == trainer && each.first_batches.size() > 1 &&
        each.first_batches[0] != each.first_batches[1]) {
      workers[each.first_batches].insert(each.worker);
    }
  }
  if (!workers.empty()) {
    std::set<int> all;
    std::size_t most = 0;
    for (const auto& [batches, numbers] : workers) {
      all.insert(numbers.begin(), numbers.end());
      most = std::max(most, numbers.size());
    }
    facts.figures["loader.workers_with_same_batches"] = {most == all.size() ? static_cast<double>(most) : 1, "script"};
  }
}

// Whether ranks work equally long in each step, and whether they agree. The ranks are the trainer's siblings.
void add_ranks(const std::vector<ScriptProcess>& processes, const ScriptProcess& trainer, Facts& facts) {
  std::vector<const RankRecord*> ranks;
  std::set<double> digests;
  for (const ScriptProcess& each : processes) {
    if (each.ranks.rank >= 0 && each.ranks.world > 1 && each.parent == trainer.parent) {
      ranks.push_back(&each.ranks);
      digests.insert(each.ranks.digest);
    }
  }
  if (ranks.size() < 2) {
    return;
  }
  std::map<int, std::int64_t> slowest;  // how often a rank worked longest
  double longest = 0, mean = 0;
  std::int64_t steps = 0;
  for (const auto& entry : ranks.front()->work) {
    const std::int64_t step = entry.first;
    double most = 0, sum = 0;
    int who = 0;
    const bool all = std::ranges::all_of(ranks, [&](const RankRecord* each) {
      const auto found = each->work.find(step);
      const double seconds = found == each->work.end() ? 0 : found->second;
      who = seconds > most ? each->rank : who;
      most = std::max(most, seconds);
      sum += seconds;
      return found != each->work.end();
    });
    if (all && step > kWarmSteps) {
      longest += most;
      mean += sum / static_cast<double>(ranks.size());
      ++slowest[who];
      ++steps;
    }
  }
  if (steps > 0 && longest > 0) {
    const auto most = std::ranges::max_element(slowest, {}, [](const auto& each) { return each.second; });
    facts.figures["ranks.waiting_share"] = {(longest - mean) / longest, "script"};
    facts.figures["ranks.slowest"] = {static_cast<double>(most->first), "script"};
    facts.figures["ranks.slowest_share"] = {static_cast<double>(most->second) / static_cast<double>(steps), "script"};
  }
  digests.erase(-1);
  facts.figures["ranks.seen"] = {static_cast<double>(ranks.size()), "script"};
  facts.figures["ranks.digests"] = {static_cast<double>(digests.size()), "script"};
}

// Seconds of all processes, as shares of the time in which calls were watched.
void add_calls(const std::vector<const ScriptProcess*>& processes, Facts& facts) {
  std::map<std::string, double, std::less<>> seconds;
  for (const ScriptProcess* each : processes) {
    for (const auto& [part, spent] : each->call_seconds) {
      seconds[part] += spent;
    }
  }
  for (const ScriptProcess* each : processes) {
    for (CallShare call : each->calls) {
      const double all = seconds[call.part];
      call.share = all > 0 ? call.share / all : 0;
      const auto same = std::ranges::find_if(facts.calls, [&](const CallShare& known) {
        return known.part == call.part && known.library == call.library && known.caller == call.caller;
      });
      same == facts.calls.end() ? facts.calls.push_back(std::move(call)) : void(same->share += call.share);
    }
  }
}

// "train.py, torch 2.11.0". A process without a name has that of the one that started it.
std::string title_of(const std::vector<ScriptProcess>& processes, const ScriptProcess& process) {
  std::string name = process.name();
  const auto parent = std::ranges::find(processes, process.parent, &ScriptProcess::pid);
  if (name.empty() && parent != processes.end()) {
    name = parent->name();
  }
  const auto version = process.words.find("torch.version");
  return (name.empty() ? "a Python program" : name) +
         (version == process.words.end() ? "" : ", torch " + version->second);
}

// What a process tells of itself.
void add_words(const std::vector<ScriptProcess>& processes, const ScriptProcess& process, Facts& facts) {
  facts.job = title_of(processes, process);
  facts.words.insert(process.words.begin(), process.words.end());
  for (const auto& [name, value] : process.figures) {
    facts.figures[name] = {value, "script"};
  }
}

// A process that ended since memory ran out; null: none. It need not be the one that trained longest.
const ScriptProcess* out_of_memory(const std::vector<ScriptProcess>& processes) {
  const auto ended = std::ranges::find_if(
      processes, [](const ScriptProcess& each) { return each.words.contains("out_of_memory.what"); });
  return ended == processes.end() ? nullptr : &*ended;
}

void add_out_of_memory(const std::vector<ScriptProcess>& processes, Facts& facts) {
  constexpr std::string_view kPrefix = "out_of_memory.";
  const ScriptProcess* ended = out_of_memory(processes);
  if (ended == nullptr) {
    return;
  }
  for (const auto& [name, word] : ended->words) {
    if (name.starts_with(kPrefix)) {
      facts.words[name] = word;
    }
  }
  for (const auto& [name, value] : ended->figures) {
    if (name.starts_with(kPrefix)) {
      facts.figures[name] = {value, "script"};
    }
  }
}

void read_monitor(const std::filesystem::path& path, Facts& facts) {
  std::ifstream file(path);
  MeanFigures figures(/*warm=*/true);
  for (std::string line; std::getline(file, line);) {
    const Json record = json_nests_deeper(line) ? Json() : Json::parse(line, nullptr, false);
    if (text_at(record, "event") == "monitor") {
      figures.add(record);
    } else if (const auto cores = real_at(record, "cores")) {
      facts.figures["machine.cores"] = {*cores, "machine"};
    }
  }
  figures.put_into(facts);
}

}  // namespace

bool is_script_record(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::exists(folder / kMonitorFile, error);
}

Trainer training_process(const std::filesystem::path& folder) {
  const std::vector<ScriptProcess> processes = read_processes(folder);
  const ScriptProcess* trainer = trainer_of(processes);
  if (trainer == nullptr) {
    return {};
  }
  const auto gpu = trainer->words.find("training.gpu_bus_id");
  return {trainer->pid, gpu == trainer->words.end() ? "" : gpu->second};
}

Facts script_facts(const std::filesystem::path& folder) {
  if (!is_script_record(folder)) {
    fail<DataError>("observe.doctor", "{}: holds no records of a script (it has no {})", printable(folder.native()),
                    kMonitorFile);
  }
  const std::vector<ScriptProcess> processes = read_processes(folder);
  Facts facts = script_facts(processes);
  if (const ScriptProcess* trainer = trainer_of(processes)) {
    facts.burst = read_burst(folder, *trainer, facts.damage);
  }
  read_monitor(folder / kMonitorFile, facts);
  return facts;
}

Facts script_facts(const std::vector<ScriptProcess>& processes) {
  Facts facts;
  facts.source = Source::kScript;
  std::int64_t bad = 0;
  for (const ScriptProcess& each : processes) {
    bad += each.bad_lines;
    facts.damage.insert(facts.damage.end(), each.trouble.begin(), each.trouble.end());
  }
  if (bad > 0) {
    facts.damage.push_back(counted(bad, "record") + " cannot be read");
  }
  const ScriptProcess* trainer = trainer_of(processes);
  if (trainer == nullptr) {
    if (const ScriptProcess* ended = out_of_memory(processes)) {
      add_words(processes, *ended, facts);  // before a step ended: its settings are what is known
    }
    facts.words["script.state"] = state_without_steps(processes);
    return facts;
  }
  add_words(processes, *trainer, facts);
  const std::size_t first = trainer->periods.size() > kWarmPeriods ? 1 : 0;
  for (std::size_t i = first; i < trainer->periods.size(); ++i) {
    facts.periods.push_back(trainer->periods[i].period);
  }
  double seconds = 0;
  for (const ScriptPeriod& each : trainer->periods) {
    seconds += each.period.seconds;
  }
  facts.figures["tracker.thread_share"] = {seconds > 0 ? trainer->tracker_seconds / seconds : 0, "script"};
  add_growth(*trainer, facts);
  add_page_faults(*trainer, first, facts);
  add_same_batches(processes, trainer->pid, facts);
  add_cores(processes, trainer->pid, facts);
  add_ranks(processes, *trainer, facts);
  std::vector<const ScriptProcess*> taking_part;
  for (const ScriptProcess& each : processes) {
    if (&each == trainer || each.parent == trainer->pid) {
      add_loading(each.loading, *trainer, facts.periods, first);
      add_worker(each, facts);
      taking_part.push_back(&each);
      facts.sites.insert(facts.sites.end(), each.sites.begin(), each.sites.end());
    }
  }
  add_calls(taking_part, facts);
  add_reading(taking_part, facts);
  add_out_of_memory(processes, facts);
  return facts;
}

}  // namespace stoker::observe::doctor
