// SPDX-License-Identifier: Apache-2.0
// The limit that memory sets: a loop that reads and writes as many arrays as an optimizer does, and computes next to
// nothing. Used by fused_bench.
#pragma once

#include <cstdint>
#include <vector>

namespace stoker::bench {

struct Traffic {
  int reads = 0;           // arrays read in one pass: 1 to 4
  int writes = 0;          // of them written back: reads - 1, or all
  bool reads_one = false;  // another pass first, which reads one of them
};

class Stream {
 public:
  // numbers: float32, of each array.
  Stream(std::int64_t numbers, Traffic traffic);
  // One pass over all arrays (two where reads_one), by one thread.
  void run();

 private:
  std::int64_t numbers_;
  Traffic traffic_;
  std::vector<std::vector<float>> arrays_;
  float seen_ = 0;  // what a read-only pass found, so that it is not left out
};

}  // namespace stoker::bench
