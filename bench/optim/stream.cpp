// SPDX-License-Identifier: Apache-2.0
#include "stream.h"

#include <array>

#include "stoker/base/error.h"

namespace stoker::bench {
namespace {

// Each array's new value is the mean of all: almost no arithmetic, and the numbers do not change.
void two(float* __restrict__ a, const float* __restrict__ b, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    a[i] = 0.5F * (a[i] + b[i]);
  }
}
void three(float* __restrict__ a, float* __restrict__ b, const float* __restrict__ c, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    a[i] = b[i] = (1.0F / 3) * (a[i] + b[i] + c[i]);
  }
}
void four(float* __restrict__ a, float* __restrict__ b, float* __restrict__ c, const float* __restrict__ d,
          std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    a[i] = b[i] = c[i] = 0.25F * (a[i] + b[i] + c[i] + d[i]);
  }
}
void four_and_back(float* __restrict__ a, float* __restrict__ b, float* __restrict__ c, float* __restrict__ d,
                   std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    a[i] = b[i] = c[i] = d[i] = 0.25F * (a[i] + b[i] + c[i] + d[i]);
  }
}
void three_and_back(float* __restrict__ a, float* __restrict__ b, float* __restrict__ c, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    a[i] = b[i] = c[i] = (1.0F / 3) * (a[i] + b[i] + c[i]);
  }
}

float sum(const float* a, std::int64_t n) {
  std::array<float, 32> sums{};  // lanes, so that the loop becomes vector instructions
  for (std::int64_t i = 0; i + 32 <= n; i += 32) {
    for (std::int64_t lane = 0; lane < 32; ++lane) {
      sums[static_cast<std::size_t>(lane)] += a[i + lane];
    }
  }
  float all = 0;
  for (const float each : sums) {
    all += each;
  }
  return all;
}

}  // namespace

Stream::Stream(std::int64_t numbers, Traffic traffic) : numbers_(numbers), traffic_(traffic) {
  const bool back = traffic.writes == traffic.reads;
  if (traffic.reads < 2 || traffic.reads > 4 || (!back && traffic.writes != traffic.reads - 1) ||
      (back && traffic.reads == 2)) {
    fail<ConfigError>("bench.stream", "no loop reads {} arrays and writes {}", traffic.reads, traffic.writes);
  }
  arrays_.assign(static_cast<std::size_t>(traffic.reads), std::vector<float>(static_cast<std::size_t>(numbers), 1));
}

void Stream::run() {
  std::array<float*, 4> a{};
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    a[i] = arrays_[i].data();
  }
  if (traffic_.reads_one) {
    seen_ += sum(arrays_.back().data(), numbers_);
  }
  const bool back = traffic_.writes == traffic_.reads;
  if (traffic_.reads == 2) {
    two(a[0], a[1], numbers_);
  } else if (traffic_.reads == 3) {
    back ? three_and_back(a[0], a[1], a[2], numbers_) : three(a[0], a[1], a[2], numbers_);
  } else {
    back ? four_and_back(a[0], a[1], a[2], a[3], numbers_) : four(a[0], a[1], a[2], a[3], numbers_);
  }
}

}  // namespace stoker::bench
