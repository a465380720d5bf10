// SPDX-License-Identifier: Apache-2.0
// Finds memory that grows step by step, from nothing but the bytes held after each step: a robust slope with a test of
// its significance. Fed by job::MemoryWatch after each step and after each batch of an evaluation. One thread.
//
// The slope is Sen's median of pairwise slopes (P. K. Sen, JASA 63, 1968), its interval Gilbert's (Statistical Methods
// for Environmental Pollution Monitoring, 1987, section 16.4.2), and the test is Mann and Kendall's, summed over
// stretches as in the seasonal test of Hirsch and Slack (Water Resources Research 20, 1984): only values of one stretch
// are compared with each other, so a jump at an evaluation or a checkpoint is no growth. The test takes values as
// independent, but a queue that fills slowly makes neighbours alike: the rise must also be clear to the eye.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "stoker/core/phase.h"
#include "stoker/device/host_allocator.h"

namespace stoker::memory {

struct LeakOptions {
  std::int64_t warm_up = 8;      // first values, which are ignored
  std::int64_t settle = 2;       // values after a disturbance, which are ignored
  std::int64_t window = 64;      // values that a verdict needs, and looks at
  std::int64_t look_every = 16;  // values from one verdict to the next; each costs about 0.1 ms
  double least = 1024;           // bytes per step; slower growth is none
};

struct Growth {
  double bytes = 0;                  // per step
  double low = 0, high = 0;          // its 95 % interval
  std::int64_t first = 0, last = 0;  // steps that it was seen over
};

class LeakWatch {
 public:
  explicit LeakWatch(LeakOptions options = {}) : options_(options) {}

  // Bytes held after a step. Returns the growth at every look that finds one: significant (|z| > 4, less than one
  // chance in 30,000 per look), four times as large over the window as all that the slope leaves unexplained, and at
  // least half as steep in the newer half of the window as in the older one, unlike caches that fill.
  std::optional<Growth> add(std::int64_t step, std::int64_t bytes);
  // Something else changed what is held: an evaluation, a checkpoint, another microbatch.
  void disturbed();

 private:
  struct Value {
    std::int64_t step, stretch;
    double bytes;
  };
  [[nodiscard]] std::optional<Growth> look() const;

  LeakOptions options_;
  std::deque<Value> values_;
  std::int64_t seen_ = 0, stretch_ = 0, ignore_ = 0;
};

// Where growth comes from, as the allocator of CPU tensors knows it.
struct LeakOrigin {
  core::Phase phase = core::Phase::kOther;  // that most of what stays was allocated in
  std::int64_t oldest = 0;                  // steps; at most kHostAges - 1
};
// Empty if blocks of earlier steps, and of the last 16 alone, do not account for at least half of the growth: then a
// queue has grown, or a cache is full by now.
[[nodiscard]] std::optional<LeakOrigin> origin_of(const Growth& growth, const device::BytesByAge& ages);

}  // namespace stoker::memory
