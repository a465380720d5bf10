// SPDX-License-Identifier: Apache-2.0
// The records of a healthy Python script as facts, and what makes it sick, for tests of rules.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "stoker/observe/doctor/facts.h"

namespace stoker::testing {

using observe::doctor::Facts;
using observe::doctor::Period;
using observe::doctor::Source;

// A quiet machine with 8 cores: 100 steps of 40 ms in ten periods, with four workers that keep up.
inline Facts healthy_script() {
  Facts facts;
  facts.source = Source::kScript;
  facts.job = "train.py, torch 2.11.0";
  for (int i = 1; i <= 10; ++i) {
    core::SourceFigures loader;
    loader.samples = 320;
    loader.threads = 4;
    loader.stages = {{.name = "samples", .seconds = 0.8, .probed_seconds = 0.8, .probed_cpu_seconds = 0.8},
                     {.name = "collate", .seconds = 0.1, .probed_seconds = 0.1, .probed_cpu_seconds = 0.1}};
    facts.periods.push_back({.last_step = 10 * i,
                             .steps = 10,
                             .seconds = 0.4,
                             .parts = {{"fetch", {0.002, 0.001}},
                                       {"backward", {0.2, 0.2}},
                                       {"optimizer", {0.01, 0.01}},
                                       {"other", {0.188, 0.188}}},
                             .loader = loader});
  }
  for (const auto& [name, value] :
       std::initializer_list<std::pair<const char*, double>>{{"machine.cores", 8},
                                                             {"machine.busy_cores", 3.3},
                                                             {"process.cpu_cores", 3.2},
                                                             {"threads.main.cpu_cores", 0.95},
                                                             {"threads.main.waiting_cores", 0.001},
                                                             {"threads.unnamed.cpu_cores", 0.5},
                                                             {"threads.workers.cpu_cores", 2.2},
                                                             {"loader.workers", 4},
                                                             {"loader.persistent", 1},
                                                             {"loader.threads_per_worker", 1},
                                                             {"loader.copied_bytes_per_second", 5e4},
                                                             {"loader.private_bytes", 3e7},
                                                             {"loader.tensors_per_batch", 2},
                                                             {"switch.threads", 4},
                                                             {"switch.optimizer.tensors", 60},
                                                             {"graphs.deeper_per_step", 0},
                                                             {"graphs.more_per_step", 0}}) {
    facts.figures[name] = {value, "script"};
  }
  facts.words = {{"switch.anomaly", "false"},        {"switch.profiler", "false"},
                 {"switch.optimizer.name", "AdamW"}, {"switch.optimizer.fused", "true"},
                 {"evaluation.gradients", "false"},  {"loader.where", "train.py:14"},
                 {"loader.start_method", "fork"},    {"loader.dataset", "Pictures"}};
  return facts;
}

// That share of each period goes to a part, at the cost of other.
inline void spend(Facts& facts, const std::string& part, double share, double computing = 1) {
  for (Period& period : facts.periods) {
    const double seconds = share * period.seconds;
    period.parts["other"].seconds -= seconds - period.part(part);
    period.parts[part] = {seconds, computing * seconds};
  }
}

inline void set(Facts& facts, const char* figure, double value) { facts.figures[figure] = {value, "script"}; }

// All periods load with that many workers, which spend so many seconds of a period on samples and on collate.
inline void load(Facts& facts, int workers, double samples, double collate, double asleep = 0) {
  set(facts, "loader.workers", workers);
  for (Period& period : facts.periods) {
    period.loader->threads = workers;
    period.loader->stages = {
        {.name = "samples",
         .seconds = samples,
         .probed_seconds = samples,
         .probed_cpu_seconds = samples * (1 - asleep),
         .probed_asleep_seconds = samples * asleep},
        {.name = "collate", .seconds = collate, .probed_seconds = collate, .probed_cpu_seconds = collate}};
  }
}

}  // namespace stoker::testing
