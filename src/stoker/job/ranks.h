// SPDX-License-Identifier: Apache-2.0
// The processes that train one run together, as this process meets them: those of a starter (torchrun, Slurm, MPI), or
// copies of this program for `ranks=N`. Made before the job, and outlives it. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "stoker/core/communicator.h"
#include "stoker/job/request.h"

namespace stoker::job {

class Ranks {
 public:
  // Joins the ranks that a starter made, or else starts copies of this program if the request or its plan file has
  // ranks= or device=cuda:all, and puts them into the request. After start_process(). ConfigError if a starter made
  // another number of ranks than asked for, if there are no GPUs for cuda:all or fewer than ranks=, or if the ranks
  // cannot meet.
  // say: receives who is missing if the ranks take long to meet, from any thread.
  explicit Ranks(Request& request, Say say = {});
  // The same for a run to resume, with changes as of Job::resume.
  Ranks(const std::filesystem::path& run, const std::vector<std::string>& changes, Say say = {});
  // For a program with a loop of its own: joins the ranks that a starter made, or else starts copies of the program.
  // ranks: how many there are then, this process included.
  explicit Ranks(int ranks, Say say = {});
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  // For Request::ranks; null: this process trains alone.
  [[nodiscard]] const std::shared_ptr<core::Communicator>& communicator() const;
  // The same as an object, of one rank if this process trains alone.
  [[nodiscard]] core::Communicator& all() const;
  // Whether this process is the one that speaks to people and writes the run.
  [[nodiscard]] bool first() const;
  // Whether their starter starts all of them again unless they exit with code 0, as torchrun does.
  [[nodiscard]] bool started_again() const;

 private:
  void join(std::int64_t asked, std::int64_t planned, double timeout, Say say, int gpus = 0);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker::job
