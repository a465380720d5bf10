// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/load/image_loader_team.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <optional>

#include "stoker/base/clock.h"
#include "stoker/core/parallel.h"

namespace stoker::data {
namespace {

constexpr double kWorthIt = 1e-3;  // seconds of one thread; for less work, waking threads costs too much

// Rows first ... rows - 1, in small parts, so that the threads end together.
void deal(std::int64_t first, std::int64_t rows, int threads, const RowPool::Range& range) {
  const std::int64_t share = std::max<std::int64_t>(1, (rows - first) / (std::int64_t{8} * threads));
  std::atomic<std::int64_t> next = first;
  core::parallel_for(threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t worker = begin; worker < end; ++worker) {
      for (std::int64_t row = 0; (row = next.fetch_add(share)) < rows;) {
        range(row, std::min(rows, row + share), static_cast<int>(worker));
      }
    }
  });
}

}  // namespace

RowPool::ShareOut on_operator_threads(int most) {
  return [most, row_seconds = std::optional<double>()](std::int64_t rows, const RowPool::Range& range) mutable {
    std::int64_t first = 0;
    if (!row_seconds && rows > 0) {  // the first row estimates the cost of the others
      const Stopwatch watch;
      range(0, 1, 0);
      row_seconds = watch.seconds();
      first = 1;
    }
    if (first == rows) {
      return;
    }
    const auto left = static_cast<double>(rows - first);
    const int threads = *row_seconds * left >= kWorthIt ? std::min(most, at::get_num_threads()) : 1;
    const Stopwatch watch;
    if (threads > 1) {
      deal(first, rows, threads, range);
    } else {
      range(first, rows, 0);
    }
    row_seconds = watch.seconds() * threads / left;
  };
}

}  // namespace stoker::data
