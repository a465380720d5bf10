// SPDX-License-Identifier: Apache-2.0
// Searches how many samples a forward pass should have: the most that fit into memory, and the fastest. Knows neither a
// model nor a device: it asks a Prober, and fits a line through the memory that its probes needed. Called by
// job::choose_passes(). One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "stoker/base/clock.h"

namespace stoker::memory {

struct Probe {
  std::int64_t samples = 0;
  bool fits = false;
  std::int64_t bytes = -1;  // needed beyond what is held between steps; -1: not known
  double seconds = 0;       // of a pass, forward and backward; 0 if it does not fit
  [[nodiscard]] double seconds_per_sample() const { return seconds / static_cast<double>(samples); }
};

class Prober {
 public:
  virtual ~Prober() = default;
  // Computes passes of this many samples. Running out of memory is a result, not an error.
  virtual Probe probe(std::int64_t samples) = 0;
};

struct FinderOptions {
  std::int64_t smallest = 1;                             // samples that the model accepts in a pass: 2 with batch norm
  std::int64_t most = 1;                                 // samples of the largest pass that makes sense, ...
  std::string most_reason = "nothing larger is needed";  // ... and why no more: "the whole batch"
  std::int64_t limit = -1;  // bytes that a pass may need beyond what is held; -1: not known
  int probes = 8;
  double seconds = 60;        // of all probes; the first one is made in any case
  double margin = 0.08;       // of the limit that the choice leaves free, unless it is the whole batch
  bool smaller_wins = false;  // of sizes that are equally fast (kEquallyFast) the smallest is chosen, not the largest
  std::function<double()> now = [] { return now_s(); };
};

// Sizes whose time per sample differs by less are equally fast: noise must not decide.
inline constexpr double kEquallyFast = 0.05;

// Why the search for the largest size ended.
enum class FinderEnd { kWholeBatch, kMemory, kTime, kProbes };

struct Found {
  std::vector<Probe> probes;  // in the order in which they were made
  std::int64_t largest = 0;   // samples of the largest probe that fits; 0: not even the smallest does
  std::int64_t fastest = 0;   // samples of the probe with the shortest time per sample
  std::int64_t chosen = 0;    // as fast as the fastest, and leaves the margin; at most `largest`
  FinderEnd end = FinderEnd::kWholeBatch;
  double seconds = 0;          // that the search took
  std::string largest_reason;  // why nothing larger
  std::string chosen_reason;
};

// At most options.probes probes. Where memory is a linear function of samples, `largest` is within 5 % of the most that
// fit, unless time or probes ended the search.
[[nodiscard]] Found find_batch(Prober& prober, const FinderOptions& options);

}  // namespace stoker::memory
