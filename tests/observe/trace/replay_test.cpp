// SPDX-License-Identifier: Apache-2.0
// A window that is played again with a kind of waiting left out: programs whose new length is known by arithmetic.
#include "stoker/observe/trace/facts/replay.h"

#include <gtest/gtest.h>

#include "support/trace_text.h"

namespace stoker::observe::trace {
namespace {

using stoker::testing::facts_of;
using stoker::testing::TraceText;

constexpr int kRounds = 10, kLaunches = 4;

// Times in microseconds.
struct Program {
  double fetch = 0;    // before each round
  double kernel = 50;  // the length of each
  bool sync = false;   // at the end of each round, and 20 us of the host's own work after it
};

struct Played {
  double recorded, again;
  Replay replay;
  [[nodiscard]] double without(Doing doing) const {
    return 1e-3 * static_cast<double>(replay.without[static_cast<std::size_t>(doing)]);
  }
};

// The host launches a kernel each 10 us; it begins 5 us later, or when the one before it ends.
Played play(const Program& program) {
  TraceText trace;
  double host = 0, device = 0;
  int correlation = 0;
  for (int round = 0; round < kRounds; ++round) {
    if (program.fetch > 0) {
      trace.host("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", host, program.fetch);
      host += program.fetch;
    }
    for (int i = 0; i < kLaunches; ++i) {
      const double begin = std::max(host + 5, device);
      trace.op("aten::add", host, 9).call("cudaLaunchKernel", host + 1, 3, ++correlation);
      trace.kernel("add", std::max(begin, host + 6), program.kernel, correlation);
      device = std::max(begin, host + 6) + program.kernel;
      host += 10;
    }
    if (program.sync) {
      trace.call("cudaStreamSynchronize", host, std::max(device - host, 0.0) + 2, ++correlation);
      host = std::max(device, host) + 2;
      trace.op("aten::item", host, 20);
      host += 20;
    }
  }
  const auto facts = facts_of(trace);
  const Replay replay = trace::replay(*facts, {0, static_cast<std::int64_t>(1e3 * host)});
  return {1e-3 * static_cast<double>(replay.recorded), 1e-3 * static_cast<double>(replay.again), replay};
}

TEST(Replay, WithNothingLeftOutIsAsLongAsTheRecord) {
  for (const Program& each : {Program{}, Program{.fetch = 100}, Program{.sync = true}, Program{.kernel = 3},
                              Program{.fetch = 30, .kernel = 20, .sync = true}}) {
    const Played played = play(each);
    EXPECT_NEAR(played.again, played.recorded, 1) << each.fetch << ' ' << each.kernel << ' ' << each.sync;
    EXPECT_NEAR(*played.replay.saved(Doing::kSaving), 0, 1e-9);
  }
}

// A round takes 40 us of launches up to the last kernel's end, and then the host's own 22: 228 in all, of which the
// device works for 200. Without the waits it works all the time.
TEST(Replay, WithoutWaitsTheDeviceIsTheLimit) {
  const Played played = play({.sync = true});
  EXPECT_NEAR(played.again, kRounds * 228, 2);
  EXPECT_NEAR(played.without(Doing::kSync), kRounds * 200, 30);
  EXPECT_NEAR(*played.replay.saved(Doing::kSync), 28.0 / 228, 0.02);
}

// With short kernels the host is: 40 us of launches and 20 of its own. A wait costs what it waits, and its return.
TEST(Replay, WithoutWaitsTheHostIsTheLimit) {
  const Played played = play({.kernel = 10, .sync = true});
  EXPECT_NEAR(played.without(Doing::kSync), kRounds * 60, 3);
  EXPECT_NEAR(played.again, kRounds * (46 + 2 + 20), 3);
}

// The device is idle for 40 us of each fetch. Without the fetch it is the limit: no more than that can be gained.
TEST(Replay, WithoutAFetchNoMoreThanTheIdleTimeIsSaved) {
  const Played played = play({.fetch = 200, .kernel = 50});
  EXPECT_NEAR(played.again, kRounds * 240 + 166, 5);  // the last round's kernels go on
  EXPECT_NEAR(played.without(Doing::kFetch), kRounds * 200, 20);
}

TEST(Replay, WithoutAFetchTheHostIsTheLimit) {
  const Played played = play({.fetch = 200, .kernel = 5});
  EXPECT_NEAR(played.without(Doing::kFetch), kRounds * 40, 20);
}

// A copy that blocks ends its call; one that does not, later.
TEST(Replay, CopiesThatBlockAreWaits) {
  TraceText trace;
  for (int i = 0; i < 10; ++i) {
    const double start = 100 * i;
    trace.op("aten::copy_", start, 80).call("cudaMemcpyAsync", start + 2, 75, i + 1);
    trace.work("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", start + 5, 70, i + 1);
    trace.op("aten::add", start + 80, 15).call("cudaLaunchKernel", start + 82, 3, 100 + i);
    trace.kernel("add", start + 87, 10, 100 + i);
  }
  const auto facts = facts_of(trace);
  const Replay replay = trace::replay(*facts, {0, 1'000'000});
  EXPECT_NEAR(1e-3 * static_cast<double>(replay.again), 1000, 5);
}

TEST(Replay, OfAProgramWithoutADeviceTellsNothing) {
  TraceText trace;
  trace.op("aten::add", 0, 10);
  const auto facts = facts_of(trace);
  EXPECT_FALSE(trace::replay(*facts, {0, 10'000}).saved(Doing::kFetch));
}

}  // namespace
}  // namespace stoker::observe::trace
