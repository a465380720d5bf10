// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/ranks_bench/link.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "stoker/base/error.h"

namespace stoker::study {
namespace {

constexpr std::string_view kWhere = "study.ranks";

// Messages in a row of a tree.
double levels(int ranks) { return std::bit_width(static_cast<unsigned>(ranks - 1)); }

Cost cost(const Link& link, double messages, double bytes) {  // bytes: of all these messages
  return {messages * link.latency_s, bytes / link.bytes_per_s};
}

// Sums over the timed sums, each divided by the square of its time.
struct Moments {
  double one = 0, bytes = 0, bytes2 = 0, time = 0, bytes_time = 0;
};

Moments moments_of(std::span<const TimedSum> sums) {
  Moments m;
  for (const TimedSum& each : sums) {
    if (!(each.seconds > 0) || each.bytes < 0) {
      fail<ConfigError>(kWhere, "a sum of {} bytes took {} s; only positive times can be fitted", each.bytes,
                        each.seconds);
    }
    const double weight = 1 / (each.seconds * each.seconds);
    m.one += weight;
    m.bytes += weight * each.bytes;
    m.bytes2 += weight * each.bytes * each.bytes;
    m.time += weight * each.seconds;
    m.bytes_time += weight * each.bytes * each.seconds;
  }
  return m;
}

}  // namespace

const char* name(Pattern pattern) { return pattern == Pattern::kRing ? "ring" : "tree"; }

Cost sum_cost(const Link& link, Pattern pattern, int ranks, double bytes) {
  if (ranks <= 1) {
    return {};
  }
  const double others = ranks - 1;
  return pattern == Pattern::kRing ? cost(link, 2 * others, 2 * others * bytes / ranks)
                                   : cost(link, 2 * levels(ranks), 2 * levels(ranks) * bytes);
}

Cost gather_cost(const Link& link, Pattern pattern, int ranks, double bytes) {
  if (ranks <= 1) {
    return {};
  }
  const double others = ranks - 1, messages = pattern == Pattern::kRing ? others : levels(ranks);
  const double latency = link.exchange_latency_s > 0 ? link.exchange_latency_s : link.latency_s;
  return {messages * latency, others * bytes / link.bytes_per_s};
}

Link fit_link(std::span<const TimedSum> sums, int ranks) {
  const auto [least, most] = std::ranges::minmax_element(sums, {}, &TimedSum::bytes);
  if (ranks < 2 || sums.size() < 2 || least->bytes == most->bytes) {
    fail<ConfigError>(kWhere, "a link is fitted to sums of at least two sizes over at least two ranks; got {} over {}",
                      sums.size(), ranks);
  }
  const Moments m = moments_of(sums);
  const double determinant = m.one * m.bytes2 - m.bytes * m.bytes;
  double fixed = (m.bytes2 * m.time - m.bytes * m.bytes_time) / determinant;
  double per_byte = (m.one * m.bytes_time - m.bytes * m.time) / determinant;
  if (fixed < 0) {
    fixed = 0;
    per_byte = m.bytes_time / m.bytes2;
  } else if (per_byte < 0) {
    per_byte = 0;
    fixed = m.time / m.one;
  }
  const double messages = 2.0 * (ranks - 1);
  return {fixed / messages, per_byte > 0 ? messages / ranks / per_byte : std::numeric_limits<double>::infinity()};
}

}  // namespace stoker::study
