// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/study/trace/json_parts.h"

namespace stoker::study {
namespace {

using namespace observe::trace;
using Json = nlohmann::ordered_json;

constexpr int kMostDepth = 24;            // of nested calls that are drawn
constexpr std::size_t kMostThreads = 12;  // the main thread, and those with most calls

// Collects what is drawn: rows, and events with a row, a depth, a begin, a length, a name and a class.
class Drawing {
 public:
  Drawing(const TraceFacts& facts, Interval window, std::size_t most_events)
      : facts_(facts), window_(window), most_events_(most_events) {}

  void add_devices() {
    for (const DeviceFactsOfTrace& device : facts_.devices) {
      const std::size_t idle = row(fmt::format("device {}: idle", device.time.device), "idle");
      const IdleTime& gaps = facts_.steps.empty() ? device.idle_whole : device.idle;
      add_pieces(idle, gaps);
      std::map<int, std::size_t> rows;
      for (const std::uint32_t i : device.time.work) {
        const Event& event = facts_.trace.events[i];
        const int stream = facts_.trace.track(event).stream;
        if (overlaps(event)) {
          const auto [place, fresh] = rows.try_emplace(stream, 0);
          place->second = fresh ? row(fmt::format("stream {}", stream), "device") : place->second;
          add(place->second, 0, event.begin, event.end, printable(std::string(facts_.trace.name(event))),
              std::string(work_name(work_of(event.kind, facts_.trace.name(event)))));
        }
      }
    }
  }

  void add_threads() {
    std::vector<const HostThread*> threads;
    for (const HostThread& thread : facts_.links.threads()) {
      threads.push_back(&thread);
    }
    std::ranges::stable_sort(threads, std::ranges::greater(), [&](const HostThread* thread) {
      return std::pair(thread->track == facts_.links.main_track(), thread->events.size());
    });
    threads_left_out_ = threads.size() - std::min(threads.size(), kMostThreads);
    threads.resize(std::min(threads.size(), kMostThreads));
    for (const HostThread* thread : threads) {
      add_thread(*thread);
    }
    if (facts_.host_idle) {
      add_pieces(row("main thread: outside operators", "idle"), *facts_.host_idle);
    }
  }

  // The longest ones, so that what is left out is too short to be seen.
  [[nodiscard]] Json json() && {
    std::size_t left_out = 0;
    if (events_.size() > most_events_) {
      std::ranges::nth_element(events_, events_.begin() + static_cast<std::ptrdiff_t>(most_events_),
                               std::ranges::greater(), &Drawn::length);
      left_out = events_.size() - most_events_;
      events_.resize(most_events_);
    }
    std::ranges::sort(events_, {}, [](const Drawn& each) { return std::tuple(each.row, each.depth, each.begin); });
    Json names = Json::array(), events = Json::array();
    std::map<std::string_view, std::size_t> numbers;
    const auto number = [&](const std::string& name) {
      const auto [place, fresh] = numbers.emplace(name, names.size());
      if (fresh) {
        names.push_back(name);
      }
      return place->second;
    };
    for (const Drawn& each : events_) {
      events.push_back({each.row, each.depth, micro(each.begin - window_.begin), micro(each.length), number(each.name),
                        number(each.kind)});
    }
    return {
        {"us", micro(window_.length())}, {"rows", rows_}, {"names", names}, {"events", events}, {"left_out", left_out}};
  }

 private:
  struct Drawn {
    std::size_t row;
    int depth;
    std::int64_t begin, length;
    std::string name, kind;
  };

  static double micro(std::int64_t ns) { return static_cast<double>(ns) * 1e-3; }
  [[nodiscard]] bool overlaps(const Event& event) const {
    return event.begin < window_.end && event.end > window_.begin;
  }

  std::size_t row(const std::string& label, const char* kind) {
    rows_.push_back({{"label", label}, {"kind", kind}, {"depth", 1}});
    return rows_.size() - 1;
  }

  void add(std::size_t row, int depth, std::int64_t begin, std::int64_t end, std::string name, std::string kind) {
    begin = std::max(begin, window_.begin);
    events_.push_back({row, depth, begin, std::min(end, window_.end) - begin, std::move(name), std::move(kind)});
    rows_[row]["depth"] = std::max(rows_[row]["depth"].get<int>(), depth + 1);
  }

  void add_pieces(std::size_t row, const IdleTime& gaps) {
    for (const IdlePiece& piece : gaps.pieces) {
      if (piece.time.begin < window_.end && piece.time.end > window_.begin) {
        const std::string name =
            piece.event == kNone ? "" : std::string(facts_.trace.name(facts_.trace.events[piece.event]));
        add(row, 0, piece.time.begin, piece.time.end, printable(name), std::string(doing_key(piece.doing)));
      }
    }
  }

  void add_thread(const HostThread& thread) {
    std::vector<std::int64_t> ends;  // of the open calls
    std::size_t place = SIZE_MAX;
    for (const std::uint32_t i : thread.events) {
      const Event& event = facts_.trace.events[i];
      while (!ends.empty() && ends.back() <= event.begin) {
        ends.pop_back();
      }
      const int depth = static_cast<int>(ends.size());
      ends.push_back(ends.empty() ? event.end : std::min(event.end, ends.back()));
      if (!overlaps(event) || depth >= kMostDepth) {
        continue;
      }
      if (place == SIZE_MAX) {
        const Track& track = facts_.trace.tracks[thread.track];
        const bool main = thread.track == facts_.links.main_track();
        const std::string label = track.name.empty() ? "thread " + printable(track.thread) : printable(track.name);
        place = row(label + (main ? ", main" : ""), "host");
      }
      add(place, depth, event.begin, ends.back(), printable(std::string(facts_.trace.name(event))),
          std::string(kind_name(event.kind)));
    }
  }

  const TraceFacts& facts_;
  Interval window_;
  std::size_t most_events_;
  Json rows_ = Json::array();
  std::vector<Drawn> events_;
  std::size_t threads_left_out_ = 0;
};

std::size_t median_step(const std::vector<Step>& steps) {
  std::vector<std::size_t> order(steps.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::ranges::sort(order, {}, [&](std::size_t i) { return steps[i].time.length(); });
  return order[order.size() / 2];
}

// Of a trace without steps: a stretch around its middle with not many more events than can be drawn.
Interval part_of(const Trace& trace, std::size_t most_events) {
  const Interval whole = whole_time(trace);
  if (trace.events.size() <= most_events) {
    return whole;
  }
  const std::size_t first = (trace.events.size() - most_events) / 2;
  return {trace.events[first].begin,
          std::max(trace.events[first + most_events - 1].begin, trace.events[first].begin + 1)};
}

}  // namespace

Json time_line(const TraceFacts& facts, std::int64_t step, std::size_t most_events) {
  if (facts.trace.events.empty()) {
    return nullptr;
  }
  std::string title = "a part of the trace";
  Interval window = part_of(facts.trace, most_events);
  if (!facts.steps.empty()) {
    const std::size_t number =
        step < 0 ? median_step(facts.steps) : std::min(static_cast<std::size_t>(step), facts.steps.size() - 1);
    title = printable(facts.steps[number].name);
    window = facts.steps[number].time;
  } else if (window == whole_time(facts.trace)) {
    title = "the whole trace";
  }
  Drawing drawing(facts, window, most_events);
  drawing.add_devices();
  drawing.add_threads();
  Json json = std::move(drawing).json();
  json["title"] = title;
  json["begin_ms"] = ms(window.begin - whole_time(facts.trace).begin);
  return json;
}

}  // namespace stoker::study
