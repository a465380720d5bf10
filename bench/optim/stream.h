// SPDX-License-Identifier: Apache-2.0
// The limit that memory sets: a loop that reads and writes as many arrays as an optimizer and computes next to nothing.
// Used by fused_bench.
#pragma once

#include <cstdint>
#include <vector>

namespace stoker::bench {

struct Traffic {
  int reads = 0;           // arrays read in one pass: 1 to 4
  int writes = 0;          // of them written back: reads - 1, or all
  bool reads_one = false;  // an extra pass first, which reads one of them
};

class Stream {
 public:
  // numbers: float32 values per array.
  Stream(std::int64_t numbers, Traffic traffic);
  // One pass over all arrays (after an extra pass if reads_one), on one thread.
  void run();

 private:
  std::int64_t numbers_;
  Traffic traffic_;
  std::vector<std::vector<float>> arrays_;
  float seen_ = 0;  // the result of the read-only pass, so that the compiler keeps it
};

}  // namespace stoker::bench
