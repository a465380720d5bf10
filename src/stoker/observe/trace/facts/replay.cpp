// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/facts/replay.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace stoker::observe::trace {
namespace {

constexpr double kMostOff = 0.03;
constexpr std::int64_t kClock = 1000;  // ns; host and device agree to about this
constexpr std::int64_t kQueue = 1000;  // ns between two pieces of work of a stream, at most

// Work of the device, as it was launched and recorded.
struct Work {
  std::size_t stream = 0;
  std::int64_t length = 0;
  std::int64_t launch_delay = 0;  // from its launch, on a stream that has nothing to do
  std::int64_t queue_delay = 0;   // from the end of the work before it
  bool queued = false;            // its stream had something to do when it was launched
};

// A call that launches work, waits for it, or both; or work without a recorded launch.
struct Action {
  Interval time;
  std::size_t first = 0, count = 0;       // of the works that it launched
  bool waits = false;                     // its time is not the host's
  std::optional<std::size_t> waited_for;  // the work that ended last before it did
  Doing doing = Doing::kLaunching;
};

bool may_wait(std::string_view name) {
  return name.find("Synchronize") != std::string_view::npos || name.find("Memcpy") != std::string_view::npos ||
         name.find("memcpy") != std::string_view::npos;
}

class Player {
 public:
  Player(const TraceFacts& facts, Interval window) : facts_(facts), window_(window) {
    take_calls();
    take_works();
    pieces_ = host_pieces(facts_.trace, facts_.links, facts_.words, {window});
  }

  // ns from the begin of the window to the end of all.
  [[nodiscard]] std::int64_t length(std::optional<Doing> without) const {
    std::vector<std::int64_t> streams = streams_before_, ends(works_.size());
    std::int64_t host = window_.begin, recorded = window_.begin, last = window_.begin;
    std::size_t piece = 0;
    for (const Action& action : actions_) {
      if (action.time.begin > recorded) {
        host += worked({recorded, action.time.begin}, without, piece);
        recorded = action.time.begin;
      }
      for (std::size_t i = action.first; i < action.first + action.count; ++i) {
        std::int64_t& stream = streams[works_[i].stream];
        stream = std::max(host + works_[i].launch_delay, stream + works_[i].queue_delay) + works_[i].length;
        ends[i] = stream;
        last = std::max(last, stream);
      }
      if (action.waits) {
        recorded = std::max(recorded, action.time.end);
        if (action.doing != without) {
          const std::int64_t done = action.waited_for ? ends[*action.waited_for] : host;
          host = std::max(host, done) + own_time(action);
        }
      }
    }
    host += worked({recorded, window_.end}, without, piece);
    return std::max(host, last) - window_.begin;
  }

  [[nodiscard]] std::int64_t recorded() const { return std::max(window_.end, last_) - window_.begin; }

 private:
  void take_calls() {
    const Trace& trace = facts_.trace;
    for (std::uint32_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      if (!window_.holds(event.begin)) {
        continue;
      }
      const bool call =
          event.kind == Kind::kRuntime && (may_wait(trace.name(event)) || !facts_.links.work_of(i).empty());
      const bool unlaunched = event.on_device() && facts_.links.launch_of(i) == kNone && is_of_device(event);
      if (call || unlaunched) {
        calls_.push_back(i);
      }
    }
  }

  [[nodiscard]] bool is_of_device(const Event& event) const {
    return facts_.trace.track(event).device == facts_.devices.front().time.device;
  }

  std::size_t stream_of(const Event& event) {
    return numbers_.try_emplace(facts_.trace.track(event).stream, numbers_.size()).first->second;
  }

  // Of the device, in the order of their launches, with the delays that were recorded.
  void take_works() {
    const Trace& trace = facts_.trace;
    std::vector<std::int64_t> streams;  // ends of the last work
    const auto end_of = [&](std::size_t stream) -> std::int64_t& {
      streams.resize(std::max(streams.size(), stream + 1), window_.begin);
      return streams[stream];
    };
    for (const std::uint32_t i : facts_.devices.front().time.work) {
      const std::uint32_t launch = facts_.links.launch_of(i);
      if ((launch == kNone ? trace.events[i] : trace.events[launch]).begin < window_.begin) {
        std::int64_t& end = end_of(stream_of(trace.events[i]));
        end = std::max(end, trace.events[i].end);
      }
    }
    streams_before_ = streams;
    for (const std::uint32_t call : calls_) {
      const Event& event = trace.events[call];
      Action action;
      action.time = {event.begin, event.on_device() ? event.begin : event.end};
      action.first = works_.size();
      if (event.on_device()) {
        add_work(event, event.begin, end_of(stream_of(event)));
      }
      for (const std::uint32_t i : facts_.links.work_of(call)) {
        if (is_of_device(trace.events[i])) {
          add_work(trace.events[i], event.begin, end_of(stream_of(trace.events[i])));
        }
      }
      action.count = works_.size() - action.first;
      if (!event.on_device() && may_wait(trace.name(event))) {
        note_wait(event, call, action);
      }
      actions_.push_back(action);
    }
    streams_before_.resize(numbers_.size(), window_.begin);
    for (Work& work : works_) {  // of queued work it is not known: the least of the others, at most
      work.launch_delay = work.queued ? std::min(work.launch_delay, latency_) : work.launch_delay;
    }
  }

  void add_work(const Event& event, std::int64_t launched, std::int64_t& end) {
    const bool queued = end > launched;
    const std::int64_t delay = std::max<std::int64_t>(event.begin - std::max(launched, end), 0);
    latency_ = queued ? latency_ : std::min(latency_, delay);
    works_.push_back({.stream = stream_of(event),
                      .length = event.duration(),
                      .launch_delay = queued ? std::max<std::int64_t>(event.begin - launched, 0) : delay,
                      .queue_delay = queued ? delay : std::min(delay, kQueue),
                      .queued = queued});
    ends_.push_back(event.end);
    of_stream_.resize(numbers_.size());
    of_stream_[works_.back().stream].push_back(works_.size() - 1);
    end = event.end;
    last_ = std::max(last_, event.end);
  }

  // A copy waits if its call ended after it. What else a call waited for is the work that ended last before its end.
  void note_wait(const Event& event, std::uint32_t call, Action& action) {
    if (action.count > 0 && ends_.back() > event.end + kClock) {
      return;
    }
    action.waits = true;
    action.doing = facts_.words.work(call).doing;
    for (const std::vector<std::size_t>& stream : of_stream_) {  // ends of a stream's works are in order
      const auto after =
          std::ranges::upper_bound(stream, event.end + kClock, {}, [&](std::size_t work) { return ends_[work]; });
      if (after != stream.begin() && (!action.waited_for || ends_[*(after - 1)] > ends_[*action.waited_for])) {
        action.waited_for = *(after - 1);
      }
    }
  }

  // What a call that waits took beside its waiting.
  [[nodiscard]] std::int64_t own_time(const Action& action) const {
    const std::int64_t done = action.waited_for ? ends_[*action.waited_for] : action.time.begin;
    return std::max<std::int64_t>(action.time.end - std::max(done, action.time.begin), 0);
  }

  // The host's time in a stretch, less that of a kind. piece: the first that may be in it; stretches come in order.
  [[nodiscard]] std::int64_t worked(Interval time, std::optional<Doing> without, std::size_t& piece) const {
    std::int64_t left = std::max<std::int64_t>(time.length(), 0);
    while (without && piece < pieces_.size() && pieces_[piece].time.begin < time.end) {
      const Interval& each = pieces_[piece].time;
      if (pieces_[piece].doing == *without) {
        left -= std::max<std::int64_t>(std::min(each.end, time.end) - std::max(each.begin, time.begin), 0);
      }
      if (each.end > time.end) {
        break;
      }
      ++piece;
    }
    return left;
  }

  const TraceFacts& facts_;
  Interval window_;
  std::vector<std::uint32_t> calls_;
  std::vector<Action> actions_;  // by time
  std::vector<Work> works_;
  std::vector<std::int64_t> ends_;                   // of works_, as recorded
  std::vector<std::vector<std::size_t>> of_stream_;  // of works_, as launched
  std::vector<std::int64_t> streams_before_;         // ends of what was launched before the window
  std::map<int, std::size_t> numbers_;               // of streams
  std::vector<IdlePiece> pieces_;                    // of the host's whole time
  std::int64_t last_ = 0;
  std::int64_t latency_ = INT64_MAX;  // the least from a launch to its work
};

}  // namespace

double Replay::length_share() const {
  return static_cast<double>(again) / static_cast<double>(std::max<std::int64_t>(recorded, 1));
}

std::optional<double> Replay::saved(Doing doing) const {
  if (std::abs(length_share() - 1) >= kMostOff) {
    return std::nullopt;
  }
  return static_cast<double>(again - without[static_cast<std::size_t>(doing)]) / static_cast<double>(again);
}

Replay replay(const TraceFacts& facts, Interval window) {
  Replay result;
  if (facts.devices.empty()) {
    return result;
  }
  const Player player(facts, window);
  result.recorded = player.recorded();
  result.again = player.length(std::nullopt);
  result.without.fill(result.again);
  for (const Doing each : kReplayed) {
    if (facts.devices.front().idle.of(each) > 0) {
      result.without[static_cast<std::size_t>(each)] = player.length(each);
    }
  }
  return result;
}

}  // namespace stoker::observe::trace
