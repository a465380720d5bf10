// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/facts/memory_curve.h"

#include <algorithm>
#include <map>

namespace stoker::observe::trace {

std::vector<MemoryCurve> memory_curves(const Trace& trace) {
  std::map<int, MemoryCurve> curves;
  std::map<int, std::int64_t> sums;
  for (const MemorySample& sample : trace.memory) {
    MemoryCurve& curve = curves[sample.device];
    curve.device = sample.device;
    std::int64_t& sum = sums[sample.device];
    sum += sample.bytes;
    curve.from_begin = curve.from_begin || sample.allocated < 0;
    const std::int64_t allocated = sample.allocated >= 0 ? sample.allocated : sum;
    curve.points.push_back({sample.time, allocated, sample.reserved});
    curve.allocations += sample.bytes > 0 ? 1 : 0;
    if (allocated > curve.peak || curve.points.size() == 1) {
      curve.peak = allocated;
      curve.peak_time = sample.time;
    }
    curve.peak_reserved = std::max(curve.peak_reserved, sample.reserved);
  }
  std::vector<MemoryCurve> result;
  for (auto& [device, curve] : curves) {
    result.push_back(std::move(curve));
  }
  return result;
}

}  // namespace stoker::observe::trace
