// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/lifeline.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/start_thread.h"
#include "stoker/base/utc.h"
#include "stoker/parallel/flight_record.h"
#include "stoker/parallel/roll_call.h"
#include "stoker/parallel/thread_stack.h"

namespace stoker::parallel {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;
constexpr std::string_view kWhere = "parallel.ranks";
constexpr auto kPeriod = 250ms;        // an error reaches all ranks within a second
constexpr auto kHurry = 20ms;          // while this rank waits for an answer
constexpr auto kAcknowledged = 2s;     // longest wait of a rank that leaves
constexpr auto kAnswers = 2s;          // longest wait for the others' answers
constexpr auto kStuck = 4s;            // longest wait for the thread, which the store may hold
constexpr auto kOnDevice = 3s;         // a device may wait for a rank that is gone: longer than that one takes to leave
constexpr int kResumable = 75;         // exit code
constexpr const char* kNews = "news";  // set if any rank has left, or has called the roll
constexpr const char* kRoll = "roll";

std::string left_key(int rank) { return fmt::format("left/{}", rank); }
std::string heard_key(int rank) { return fmt::format("heard/{}", rank); }
std::string answer_key(int rank) { return fmt::format("answer/{}", rank); }

}  // namespace

// What the thread works on. The main thread sets what it wants and waits; only the thread calls the store.
class Lifeline::Watch {
 public:
  Watch(std::unique_ptr<Store> store, LifelineOptions options)
      : store_(std::move(store)),
        options_(std::move(options)),
        ranks_(static_cast<int>(options_.members.size())),
        answers_(options_.members.size()) {}

  void run();
  void stop();

  void check();
  std::int64_t begin(std::string_view operation, std::int64_t bytes, bool counts) {
    check();
    return record_.begin(operation, bytes, counts);
  }
  void end(std::int64_t place, bool failed) { record_.end(place, failed); }
  void leave(const std::exception& error);
  [[noreturn]] void explain(const std::string& what);
  void keep_record_in(const std::filesystem::path& folder) {
    const std::lock_guard lock(mutex_);
    folder_ = folder;
  }
  std::string trouble() const {
    const std::lock_guard lock(mutex_);
    return trouble_;
  }

 private:
  using Lock = std::unique_lock<std::mutex>;
  void look();
  void read_departures();
  void hear();
  void answer_roll();
  void collect_answers();
  void end_if_hung();
  void watch_device();
  [[nodiscard]] bool somebody_ended() const;
  [[nodiscard]] std::string missing() const;
  void write_record(const std::string& reason, const std::string& stack) const;

  const std::unique_ptr<Store> store_;
  const LifelineOptions options_;
  const int ranks_;
  const pthread_t main_ = ::pthread_self();
  FlightRecord record_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false, ended_ = false;  // the thread shall end; has ended
  bool asked_ = false, leaving_ = false;  // by the main thread
  bool noticed_ = false;                  // the main thread knows that the ranks end
  bool counted_ = false, all_heard_ = false;
  bool silent_ = false;  // the thread waits for a store that does not answer: nobody else waits for the thread
  std::optional<Departure> own_, departure_;  // of this rank; the first of the others
  std::vector<std::optional<Standing>> answers_;
  std::string trouble_;
  std::filesystem::path folder_;

  // Of the thread alone.
  bool called_ = false, told_ = false, heard_ = false, answered_ = false, stuck_ = false;
  std::optional<Steady::time_point> departed_, called_at_, told_at_;
  std::optional<Steady::time_point> alone_;  // since then a device waits for a rank that is gone
};

void Lifeline::Watch::run() {
  Lock lock(mutex_);
  while (!stopped_) {
    const bool hurry = (asked_ && !counted_) || (leaving_ && !all_heard_);
    changed_.wait_for(lock, hurry ? kHurry : kPeriod,
                      [&] { return stopped_ || (asked_ && !called_) || (leaving_ && !told_); });
    if (stopped_) {
      break;
    }
    lock.unlock();
    try {
      look();
    } catch (const std::exception& error) {  // the store is gone
      const std::lock_guard again(mutex_);
      trouble_ = error.what();
      break;
    }
    lock.lock();
  }
  if (!lock.owns_lock()) {
    lock.lock();
  }
  ended_ = true;
  changed_.notify_all();
  while (options_.device && !stopped_) {  // without the store: what waits on a device must still end
    changed_.wait_for(lock, kPeriod, [&] { return stopped_; });
    lock.unlock();
    watch_device();
    lock.lock();
  }
}

void Lifeline::Watch::stop() {
  Lock lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
  if (!silent_) {
    changed_.wait_for(lock, kStuck, [&] { return ended_; });
  }
}

void Lifeline::Watch::check() {
  const std::lock_guard lock(mutex_);
  if (departure_ && departure_->collectives <= record_.next()) {
    noticed_ = true;
    throw_departure(*departure_);
  }
}

void Lifeline::Watch::leave(const std::exception& error) {
  Lock lock(mutex_);
  if (std::exchange(leaving_, true)) {
    return;
  }
  noticed_ = true;
  own_ = departure_of(options_.rank, record_.next(), error);
  changed_.notify_all();
  if (!silent_) {
    changed_.wait_for(lock, kAcknowledged, [&] { return all_heard_ || ended_; });
  }
}

void Lifeline::Watch::explain(const std::string& what) {
  Lock lock(mutex_);
  asked_ = noticed_ = true;
  changed_.notify_all();
  silent_ = !changed_.wait_for(lock, kStuck, [&] { return departure_ || counted_ || ended_; });
  if (departure_) {
    const Departure first = *departure_;
    lock.unlock();
    throw_departure(first);
  }
  const std::string reason = fmt::format("rank {} lost the others: {} ({})", options_.rank, missing(), what);
  lock.unlock();
  write_record(reason, "");
  if (options_.device) {
    options_.device->cut_off();
  }
  fail<RankError>(kWhere, "{}", reason);
}

// With the lock held.
std::string Lifeline::Watch::missing() const {
  const Member& self = options_.members[static_cast<std::size_t>(options_.rank)];
  const auto look = [&](const Member& member) { return fate(member, self); };
  if (counted_) {
    return who_is_missing(options_.members, answers_, look);
  }
  std::vector<std::optional<Standing>> alive(options_.members.size(), Standing{});
  bool known = false;
  for (std::size_t rank = 0; rank < alive.size(); ++rank) {
    if (!look(options_.members[rank]).empty()) {
      alive[rank].reset();
      known = true;
    }
  }
  return known ? who_is_missing(options_.members, alive, look)
               : fmt::format(
                     "the store of the ranks ({}) does not answer: its process, its machine or the network to "
                     "it is gone",
                     options_.store);
}

void Lifeline::Watch::look() {
  Lock lock(mutex_);
  const bool call = asked_ && !std::exchange(called_, true);
  const std::optional<Departure> own = leaving_ && !std::exchange(told_, true) ? own_ : std::nullopt;
  lock.unlock();
  if (own) {
    store_->set(left_key(options_.rank), to_text(*own));
    store_->set(heard_key(options_.rank), "1");
    told_at_ = Steady::now();
  }
  if (call) {
    store_->set(kRoll, "1");
    called_at_ = Steady::now();
  }
  if (own || call) {
    store_->set(kNews, "1");
  }
  watch_device();
  if (!store_->get(kNews)) {
    return;
  }
  read_departures();
  if (!told_ && !answered_ && store_->get(kRoll)) {
    answer_roll();
  }
  if (called_at_ && !counted_) {
    collect_answers();
  }
  hear();
  end_if_hung();
}

// The host may be waiting for the device, so nothing else would end it. NCCL notices no process that ended on its own
// machine.
void Lifeline::Watch::watch_device() {
  if (!options_.device || !options_.device->busy() || !(departed_ || somebody_ended())) {
    alone_.reset();
    return;
  }
  alone_ = alone_.value_or(Steady::now());
  if (Steady::now() - *alone_ > kOnDevice) {
    options_.device->cut_off();
  }
}

bool Lifeline::Watch::somebody_ended() const {
  const Member& self = options_.members[static_cast<std::size_t>(options_.rank)];
  return std::ranges::any_of(options_.members,
                             [&](const Member& each) { return fate(each, self).starts_with("has ended"); });
}

void Lifeline::Watch::read_departures() {
  std::optional<Departure> first;
  for (int other = 0; other < ranks_; ++other) {
    const auto text = other == options_.rank ? std::nullopt : store_->get(left_key(other));
    if (const auto gone = text ? std::optional(departure_from(*text)) : std::nullopt;
        gone && (!first || gone->collectives < first->collectives)) {
      first = gone;
    }
  }
  if (!first) {
    return;
  }
  departed_ = departed_.value_or(Steady::now());
  const std::lock_guard lock(mutex_);
  departure_ = first;
  changed_.notify_all();
}

// The rank that left may close its connections when the others have completed what it took part in. Of the one that
// leaves: whether all have said so; a rank that leaves after another one waits for nobody.
void Lifeline::Watch::hear() {
  Lock lock(mutex_);
  const std::optional<Departure> first = departure_;
  lock.unlock();
  if (first && !heard_) {
    const Standing standing = record_.standing();
    const bool stuck = standing.waits && standing.newest >= first->collectives;  // earlier ones may still complete
    if (!standing.waits || (stuck && stuck_)) {
      store_->set(heard_key(options_.rank), "1");
      heard_ = true;
    }
    stuck_ = stuck;
  }
  if (!told_at_ || all_heard_) {
    return;
  }
  bool all = true;
  for (int other = 0; other < ranks_ && all && !first; ++other) {
    all = store_->get(heard_key(other)).has_value();
  }
  if (all || Steady::now() - *told_at_ > kAcknowledged) {
    lock.lock();
    all_heard_ = true;
    changed_.notify_all();
  }
}

void Lifeline::Watch::answer_roll() {
  const Standing standing = record_.standing();
  store_->set(answer_key(options_.rank), to_text(standing));
  answered_ = true;
  Lock lock(mutex_);
  const bool hangs = !noticed_ && !standing.waits;
  lock.unlock();
  if (hangs) {
    write_record(fmt::format("the others wait for rank {}", options_.rank), stack_of(main_));
  }
}

void Lifeline::Watch::collect_answers() {
  bool all = true;
  const Member& self = options_.members[static_cast<std::size_t>(options_.rank)];
  std::vector<std::optional<Standing>> answers(options_.members.size());
  for (int other = 0; other < ranks_; ++other) {
    const auto place = static_cast<std::size_t>(other);
    if (const auto text = store_->get(answer_key(other))) {
      answers[place] = standing_from(*text);
    } else {
      all = all && !fate(options_.members[place], self).empty();
    }
  }
  if (all || Steady::now() - *called_at_ > kAnswers) {
    const std::lock_guard lock(mutex_);
    answers_ = std::move(answers);
    counted_ = true;
    changed_.notify_all();
  }
}

// The main thread hangs in its own work, so nothing else ends this process.
void Lifeline::Watch::end_if_hung() {
  const std::lock_guard lock(mutex_);
  if (noticed_ || !departed_ || Steady::now() - *departed_ < options_.timeout) {
    return;
  }
  std::fputs(fmt::format("stoker: rank {} ends: {}, and its main thread did not return for {} s\n", options_.rank,
                         departure_->reason, std::chrono::duration_cast<std::chrono::seconds>(options_.timeout).count())
                 .c_str(),
             stderr);
  ::_exit(kResumable);
}

void Lifeline::Watch::write_record(const std::string& reason, const std::string& stack) const {
  std::filesystem::path folder;
  {
    const std::lock_guard lock(mutex_);
    folder = folder_;
  }
  if (folder.empty()) {
    return;
  }
  std::error_code ignored;  // the error that ends the run matters more
  std::filesystem::create_directories(folder, ignored);
  std::ofstream file(folder / fmt::format("rank-{}.txt", options_.rank));
  const Member& self = options_.members[static_cast<std::size_t>(options_.rank)];
  file << fmt::format("rank {} of {} on {}, process {}, at {}\n{}\n\n", options_.rank, ranks_, self.host, self.process,
                      utc_now("%Y-%m-%dT%H:%M:%SZ"), reason);
  if (!stack.empty()) {
    file << "its main thread, the innermost call first:\n" << stack << "\n";
  }
  file << "its last collectives:\n" << record_.text();
}

Lifeline::Lifeline(std::unique_ptr<Store> store, LifelineOptions options)
    : watch_(std::make_shared<Watch>(std::move(store), std::move(options))) {
  start_thread("parallel.lifeline", "hears of ranks that fail", [watch = watch_] { watch->run(); }).detach();
}

Lifeline::~Lifeline() { watch_->stop(); }

void Lifeline::check() { watch_->check(); }
std::int64_t Lifeline::begin(std::string_view operation, std::int64_t bytes, bool counts) {
  return watch_->begin(operation, bytes, counts);
}
void Lifeline::end(std::int64_t place, bool failed) { watch_->end(place, failed); }
void Lifeline::leave(const std::exception& error) { watch_->leave(error); }
void Lifeline::explain(const std::string& what) { watch_->explain(what); }
void Lifeline::keep_record_in(const std::filesystem::path& folder) { watch_->keep_record_in(folder); }
std::string Lifeline::trouble() const { return watch_->trouble(); }

}  // namespace stoker::parallel
