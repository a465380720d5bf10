// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/meeting.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

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

// "rank 1", "ranks 1, 3"; of many the first ones.
std::string names_of(const std::vector<int>& ranks) {
  constexpr std::size_t kMostNames = 16;
  const std::size_t named = std::min(ranks.size(), kMostNames);
  const std::string more = named < ranks.size() ? fmt::format(" and {} more", ranks.size() - named) : "";
  return fmt::format("rank{} {}{}", ranks.size() == 1 ? "" : "s",
                     fmt::join(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(named), ", "), more);
}

// Whether it is time to say again what one waits for.
class Reminder {
 public:
  explicit Reminder(const GroupOptions& options)
      : options_(options), next_(std::chrono::steady_clock::now() + options.say_first) {}

  [[nodiscard]] bool due() {
    if (!options_.say || std::chrono::steady_clock::now() < next_) {
      return false;
    }
    next_ = std::chrono::steady_clock::now() + options_.say_again;
    return true;
  }

 private:
  const GroupOptions& options_;
  std::chrono::steady_clock::time_point next_;
};

// One of the ranks that are there speaks for all.
void say_who_is_missing(const Place& place, Store& store, const GroupOptions& options) {
  std::vector<int> missing;
  for (int rank = 0; rank < place.ranks; ++rank) {
    if (rank == place.rank) {
      continue;
    }
    if (!store.get(here_key(rank))) {
      missing.push_back(rank);
    } else if (rank < place.rank) {
      return;
    }
  }
  if (!missing.empty()) {
    options.say(fmt::format("waiting for {} of {}", names_of(missing), place.ranks));
  }
}

// How many ranks the other one knows of; waits until it is there.
std::string wait_for(int other, const Place& place, Store& store, const GroupOptions& options, Reminder& reminder) {
  const auto until = std::chrono::steady_clock::now() + options.start;
  for (;;) {
    if (std::optional<std::string> ranks = store.get(here_key(other))) {
      return *std::move(ranks);
    }
    check_refused(store);
    if (options.while_waiting) {
      options.while_waiting();
    }
    if (reminder.due()) {
      say_who_is_missing(place, store, options);
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

std::unique_ptr<Store> open_store(const Place& place, const GroupOptions& options) {
  const MeetingPoint& meeting = place.meeting;
  std::mutex mutex;
  std::condition_variable_any opened;
  std::jthread speaker;
  if (options.say && place.local_rank == 0 && meeting.file.empty() && !meeting.serves) {
    speaker = std::jthread([&](const std::stop_token& stop) {
      std::unique_lock lock(mutex);
      for (auto pause = options.say_first;
           !opened.wait_for(lock, stop, pause, [] { return false; }) && !stop.stop_requested();
           pause = options.say_again) {
        options.say(fmt::format("waiting for the store of the ranks at {}:{}, which rank 0 or its starter opens",
                                meeting.host, meeting.port));
      }
    });
  }
  return std::make_unique<Store>(place, options.start);
}

void wait_for_all(const Place& place, Store& store, const GroupOptions& options) {
  if (store.add(fmt::format("processes/{}", place.rank), 1) > 1) {
    refuse(store, fmt::format("two processes are rank {} of {}; give each process a rank of its own, and each run a "
                              "port of its own",
                              place.rank, place.ranks));
  }
  const std::string ranks = std::to_string(place.ranks);
  store.set(here_key(place.rank), ranks);
  Reminder reminder(options);
  for (int other = 0; other < place.ranks; ++other) {
    if (const std::string theirs = wait_for(other, place, store, options, reminder); theirs != ranks) {
      refuse(store, fmt::format("rank {} was started as one of {} ranks, but rank {} as one of {}; start all with the "
                                "same number",
                                place.rank, ranks, other, theirs));
    }
  }
}

}  // namespace stoker::parallel
