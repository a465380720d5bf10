// SPDX-License-Identifier: Apache-2.0
// Measures what more ranks bring on this machine: steps of a model on 1, 2, 4 ... ranks, the latency and the bandwidth
// of sums over them, and a forecast for as many ranks as people have. For `stoker bench ranks`. One thread per rank.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stoker/study/ranks_bench/forecast.h"
#include "stoker/study/ranks_bench/link.h"

namespace stoker::study {

struct RanksBenchOptions {
  std::string model = "cnn";   // of the models of `stoker bench tips`
  std::string device = "cpu";  // "cpu"; "cuda": each rank has a GPU
  std::int64_t batch = 0;      // samples of each rank; 0: the model's own
  int ranks = 0;               // the most to measure; 0: one per core, at least 4, or one per GPU
  int intra_op = 1;            // threads per operator of each rank
  double seconds = 1;          // per measurement
  double latency_s = 0;        // of the network to forecast for; 0: as measured
  double bytes_per_s = 0;      // of that network; 0: as measured
  std::function<void(const std::string&)> say = [](const std::string&) {};
  std::function<bool()> stop = [] { return false; };
};

// Ranks that were measured together.
struct MeasuredRanks {
  int ranks = 1;
  double step_s = 0;           // of the model
  double sleeping_s = 0;       // of the model whose compute sleeps
  double exchange_s = 0;       // of a few numbers; 0 for one rank
  std::vector<TimedSum> sums;  // none for one rank
};

struct RanksBench {
  std::string model, text;  // name, and kind and size
  std::int64_t parameters = 0;
  std::int64_t batch = 0;  // samples of each rank
  std::string device;      // "cpu", "cuda"
  int cores = 0;           // that these processes may use
  int intra_op = 1;
  Course course, sleeping;              // a step of each model that sends nothing
  std::vector<MeasuredRanks> measured;  // ascending; the first has one rank
  std::optional<Link> link;             // fitted to the sums of the first measured ranks; none: stopped before
  int link_ranks = 0;                   // these
  std::optional<Link> asked;            // the network to forecast for, if it is another one
  bool stopped = false;
};

// The ranks of a starter (torchrun, Slurm, MPI) measure among themselves; without one, it starts copies of this program
// with the same command line, as ranks=N does. One GPU: only steps on one rank. ConfigError for an unknown model, or
// fewer than two ranks; DeviceError without a GPU for "cuda".
[[nodiscard]] RanksBench bench_ranks(const RanksBenchOptions& options);

// Whether this process is the one that speaks to people: not a rank behind the first one.
[[nodiscard]] bool is_first_rank();

// For 8, 16 ... 1,024 ranks, with the asked network, or else the measured link. Empty without a link.
[[nodiscard]] std::vector<Forecast> forecasts(const RanksBench& bench);

// Text with bars; JSON.
[[nodiscard]] std::string ranks_bench_text(const RanksBench& bench);
[[nodiscard]] std::string ranks_bench_json(const RanksBench& bench);

}  // namespace stoker::study
