// SPDX-License-Identifier: Apache-2.0
// The other ranks of `ranks=N`: this program starts copies of itself with the same command line on this machine, and is
// rank 0. They meet in a file and open no port. Used by job::Ranks; one thread.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "stoker/parallel/place.h"

namespace stoker::parallel {

class Siblings {
 public:
  // Starts ranks 1 ... ranks - 1, which find their place in their environment (place_of). IoError if the system starts
  // no more processes, or has no room for the file.
  explicit Siblings(int ranks);
  // Waits ten seconds for them to end, then ends them.
  ~Siblings();
  Siblings(const Siblings&) = delete;
  Siblings& operator=(const Siblings&) = delete;

  // RankError if one of them has ended, while all must meet.
  void check();
  // Of this process.
  [[nodiscard]] const Place& place() const { return place_; }

 private:
  void start(int rank);
  void end();

  std::filesystem::path folder_;
  Place place_;
  std::vector<pid_t> others_;  // 0: has ended
};

// In a copy: it ends with the program that started it, also if that one is killed.
void end_with_starter();

}  // namespace stoker::parallel
