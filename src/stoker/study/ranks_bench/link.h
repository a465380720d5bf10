// SPDX-License-Identifier: Apache-2.0
// What messages between ranks cost: the alpha-beta model (Hockney, 1994), in which a message of n bytes takes
// latency + n / bandwidth, and sums over ranks made of such messages (Thakur, Rabenseifner and Gropp, 2005). Used by
// `stoker bench ranks`. Thread-safe: no state, no torch.
#pragma once

#include <span>

namespace stoker::study {

struct Link {
  double latency_s = 0;           // of a message of a sum; alpha
  double bytes_per_s = 0;         // 1 / beta
  double exchange_latency_s = 0;  // of a message of a gathering, of which c10d makes fewer in a row; 0: latency_s
};

// How ranks sum. Gloo makes rings; a tree has fewer messages in a row, and each is larger.
enum class Pattern { kRing, kTree };
[[nodiscard]] const char* name(Pattern pattern);

// The latency and the rest of the time of a collective. One rank: 0.
struct Cost {
  double latency_s = 0, transfer_s = 0;
  [[nodiscard]] double seconds() const { return latency_s + transfer_s; }
};

// A sum of `bytes` over ranks. Ring: 2 (R - 1) messages of bytes / R; tree: 2 log2(R), rounded up, of all bytes.
[[nodiscard]] Cost sum_cost(const Link& link, Pattern pattern, int ranks, double bytes);
// Each rank gets the `bytes` of each other one: R - 1 messages in a ring, log2(R) in a tree, with R - 1 times the
// bytes.
[[nodiscard]] Cost gather_cost(const Link& link, Pattern pattern, int ranks, double bytes);

struct TimedSum {
  double bytes = 0, seconds = 0;
};

// The link that explains the times of sums in a ring best: least squares of the relative errors, since times differ by
// factors of hundreds. Latency and 1 / bandwidth are at least 0. ConfigError below two ranks, below two sizes, and for
// times that are not positive.
[[nodiscard]] Link fit_link(std::span<const TimedSum> sums, int ranks);

}  // namespace stoker::study
