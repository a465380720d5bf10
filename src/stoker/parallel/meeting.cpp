// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/meeting.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "stoker/base/error.h"

namespace stoker::parallel {
namespace {

using namespace std::chrono_literals;
constexpr std::string_view kWhere = "parallel.ranks";
constexpr auto kPause = 10ms;
constexpr auto kHeard = 1s;  // for the others to read why, before the store's process ends
constexpr const char* kRefused = "refused";

std::string here_key(int rank) { return fmt::format("here/{}", rank); }

void check_refused(Store& store) {
  if (const std::optional<std::string> why = store.get(kRefused)) {
    std::this_thread::sleep_for(kHeard);
    fail<ConfigError>(kWhere, "{}", *why);
  }
}

// How many ranks the other one knows of; waits until it is there.
std::string wait_for(int other, const Place& place, Store& store, const GroupOptions& options) {
  const auto until = std::chrono::steady_clock::now() + options.start;
  for (;;) {
    if (std::optional<std::string> ranks = store.get(here_key(other))) {
      return *std::move(ranks);
    }
    check_refused(store);
    if (options.while_waiting) {
      options.while_waiting();
    }
    if (std::chrono::steady_clock::now() > until) {
      fail<ConfigError>(kWhere, "rank {} of {} waited {} s for rank {}, which did not come; start all ranks",
                        place.rank, place.ranks,
                        std::chrono::duration_cast<std::chrono::seconds>(options.start).count(), other);
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

void refuse(Store& store, const std::string& why) {
  store.set(kRefused, why);
  std::this_thread::sleep_for(kHeard);
  fail<ConfigError>(kWhere, "{}", why);
}

void wait_for_all(const Place& place, Store& store, const GroupOptions& options) {
  if (store.add(fmt::format("processes/{}", place.rank), 1) > 1) {
    refuse(store, fmt::format("two processes are rank {} of {}; give each process a rank of its own, and each run a "
                              "port of its own",
                              place.rank, place.ranks));
  }
  const std::string ranks = std::to_string(place.ranks);
  store.set(here_key(place.rank), ranks);
  for (int other = 0; other < place.ranks; ++other) {
    if (const std::string theirs = wait_for(other, place, store, options); theirs != ranks) {
      refuse(store, fmt::format("rank {} was started as one of {} ranks, but rank {} as one of {}; start all with the "
                                "same number",
                                place.rank, ranks, other, theirs));
    }
  }
}

}  // namespace stoker::parallel
