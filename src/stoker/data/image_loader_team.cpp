// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/image_loader_team.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>

#include "stoker/base/clock.h"
#include "stoker/core/parallel.h"

namespace stoker::data {
namespace {

constexpr double kWorthIt = 1e-3;  // seconds of one thread; less is soon done, and waking a thread may take as long

// Small shares, so that the threads end together.
void deal(std::int64_t rows, int threads, const RowPool::Range& range) {
  const std::int64_t share = std::max<std::int64_t>(1, rows / (std::int64_t{8} * threads));
  std::atomic<std::int64_t> next = 0;
  core::parallel_for(threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t worker = begin; worker < end; ++worker) {
      for (std::int64_t first = 0; (first = next.fetch_add(share)) < rows;) {
        range(first, std::min(rows, first + share), static_cast<int>(worker));
      }
    }
  });
}

}  // namespace

RowPool::ShareOut on_operator_threads(int most) {
  return [most, row_seconds = 0.0](std::int64_t rows, const RowPool::Range& range) mutable {
    const bool worth_it = row_seconds * static_cast<double>(rows) >= kWorthIt;
    const int threads = worth_it ? std::min(most, at::get_num_threads()) : 1;
    const Stopwatch watch;
    if (threads > 1) {
      deal(rows, threads, range);
    } else {
      range(0, rows, 0);
    }
    row_seconds = watch.seconds() * threads / static_cast<double>(std::max<std::int64_t>(rows, 1));
  };
}

}  // namespace stoker::data
