// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/ranks_bench/forecast.h"

#include <algorithm>
#include <array>

#include "stoker/base/error.h"

namespace stoker::study {
namespace {

constexpr std::size_t kAtOnce = 2;  // threads of c10d::ProcessGroupGloo (its Options)

// The network as the sums of a step use it.
class Network {
 public:
  // When a sum ends that may begin at this moment.
  double end_of(double at, const Cost& cost) {
    double& thread = *std::ranges::min_element(free_);
    wire_ = std::max({wire_, at, thread}) + cost.transfer_s;
    thread = wire_ + cost.latency_s;
    return thread;
  }

 private:
  std::array<double, kAtOnce> free_{};
  double wire_ = 0;
};

}  // namespace

Forecast forecast(const Course& course, const Link& link, Pattern pattern, int ranks) {
  Forecast result{.ranks = ranks, .pattern = pattern};
  Network network;
  std::vector<double> ends;
  double late = 0;  // by how much the step is behind its course
  for (const Call& call : course.calls) {
    const double now = call.at_s + late;
    const Cost cost = call.kind == Call::Kind::kGather ? gather_cost(link, pattern, ranks, call.bytes)
                      : call.kind == Call::Kind::kWait ? Cost{}
                                                       : sum_cost(link, pattern, ranks, call.bytes);
    result.communication_s += cost.seconds();
    if (call.kind == Call::Kind::kStart) {
      ends.push_back(network.end_of(now, cost));
    } else if (call.kind != Call::Kind::kWait) {
      late += cost.seconds();
    } else if (call.sum >= ends.size()) {
      fail<ConfigError>("study.ranks", "the step waits for sum {}, but has started {}", call.sum, ends.size());
    } else {
      late += std::max(0.0, ends[call.sum] - now);
    }
  }
  result.exposed_s = late;
  result.seconds = course.seconds + late;
  return result;
}

Forecast best_forecast(const Course& course, const Link& link, int ranks) {
  const Forecast ring = forecast(course, link, Pattern::kRing, ranks);
  const Forecast tree = forecast(course, link, Pattern::kTree, ranks);
  return tree.seconds < ring.seconds ? tree : ring;
}

}  // namespace stoker::study
