// SPDX-License-Identifier: Apache-2.0
// The place of this process among those that train together, as its starter tells it in the environment: torchrun,
// Kubernetes, Slurm, MPI, or Stoker itself (parallel/siblings.h). Without torch; no state.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace stoker::parallel {

// How processes of a run find each other: by a file, or by a server that one of them runs.
struct MeetingPoint {
  std::string file;  // of a file store that all ranks see; empty: host and port
  std::string host;  // of a TCP store
  int port = 0;
  bool serves = false;  // this process runs that store; torchrun's agent does so otherwise
  std::string prefix;   // of all keys: differs from start to start of the same run
};

struct Place {
  int rank = 0, ranks = 1;              // of the run
  int local_rank = 0, local_ranks = 1;  // of this node
  std::string starter;                  // "torchrun", "Slurm", "Open MPI", "MPICH", "ranks="
  std::string start_id;                 // the same after a restart, unlike that of other starts; empty: it has none
  int restarts = 0;                     // of the run, so far
  bool restarts_all = false;            // the starter starts all ranks again unless they exit with code 0
  MeetingPoint meeting;

  [[nodiscard]] bool one_node() const { return local_ranks == ranks; }
};

// Value of an environment variable; null if it is not set.
using Environment = std::function<const char*(const char*)>;
[[nodiscard]] Environment process_environment();

// None if no starter set its variables. ConfigError names the variable that is missing or wrong.
[[nodiscard]] std::optional<Place> place_of(const Environment& environment);

}  // namespace stoker::parallel
