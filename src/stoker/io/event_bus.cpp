// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/event_bus.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "stoker/io/sink_queue.h"

namespace stoker::io {
namespace {

using core::Event;
using core::StepFinished;

constexpr std::size_t kMergeBeyond = 256;  // events that wait for a slow sink before its steps are merged
constexpr int kMostUnread = 48;            // of the ring's 64 slots; the rest are the loop's head start
constexpr std::chrono::milliseconds kQuiet{100};

// What a step's scalars are once they are read: sinks can keep them as long as they like.
class ReadScalars final : public core::PendingScalars {
 public:
  explicit ReadScalars(const core::Scalars& scalars) : scalars_(scalars) {}
  [[nodiscard]] core::Scalars read() const override { return scalars_; }

 private:
  core::Scalars scalars_;
};

bool merge_steps(Event& newest, Event& next) {
  auto* older = std::get_if<StepFinished>(&newest);
  auto* newer = std::get_if<StepFinished>(&next);
  if (older == nullptr || newer == nullptr) {
    return false;
  }
  newer->merged += older->merged + 1;
  *older = std::move(*newer);
  return true;
}

bool has_scalars(const Event& event) {
  const auto* step = std::get_if<StepFinished>(&event);
  return step != nullptr && step->scalars != nullptr;
}

std::string current_reason() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "unknown exception";
  }
}

using Report = std::function<void(const std::string&)>;

// One sink, its queue and its thread.
class Outlet {
 public:
  Outlet(std::unique_ptr<core::EventSink> sink, const Report& report)
      : sink_(std::move(sink)),
        report_(report),
        queue_(kMergeBeyond, sink_->wants_every_step() ? nullptr : merge_steps),
        thread_([this] { deliver(); }) {}
  ~Outlet() {
    queue_.close();
    thread_.join();
  }
  void push(Event event) { queue_.push(std::move(event)); }

 private:
  void deliver() {
    try {
      Event event;
      bool flushed = true;
      while (true) {
        switch (queue_.pop(event, flushed ? std::chrono::milliseconds(0) : kQuiet)) {
          case Wake::kValue:
            sink_->on(event);
            flushed = false;
            break;
          case Wake::kQuiet:
            sink_->flush();
            flushed = true;
            break;
          case Wake::kClosed: sink_->flush(); return;
        }
      }
    } catch (...) {
      queue_.abandon();
      report_("a log is given up, the run goes on: " + current_reason());
    }
  }

  std::unique_ptr<core::EventSink> sink_;
  const Report& report_;
  SinkQueue<Event> queue_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace

struct EventBus::State {
  explicit State(Report given) : report(std::move(given)), reader([this] { read(); }) {}
  ~State() {
    {
      const std::lock_guard lock(mutex);
      closed = true;
    }
    not_empty.notify_one();
    reader.join();
    outlets.clear();  // each delivers what it still holds
  }

  void emit(Event event) {
    std::unique_lock lock(mutex);
    if (has_scalars(event)) {
      room.wait(lock, [&] { return unread < kMostUnread; });
      ++unread;
    }
    events.push_back(std::move(event));
    lock.unlock();
    not_empty.notify_one();
  }

  // The one thread that waits for the device. It never waits for a sink, so slots come back in time.
  void read() {
    while (std::optional<Event> event = next()) {
      if (has_scalars(*event)) {
        take_scalars(std::get<StepFinished>(*event));
      }
      const std::lock_guard lock(outlets_mutex);
      for (const auto& outlet : outlets) {
        outlet->push(*event);
      }
    }
  }
  std::optional<Event> next() {
    std::unique_lock lock(mutex);
    not_empty.wait(lock, [&] { return closed || !events.empty(); });
    if (events.empty()) {
      return std::nullopt;
    }
    std::optional<Event> event(std::move(events.front()));
    events.pop_front();
    return event;
  }
  void take_scalars(StepFinished& step) {
    std::shared_ptr<const core::PendingScalars> scalars;
    try {
      scalars = std::make_shared<ReadScalars>(step.scalars->read());
    } catch (...) {
      if (!reported) {
        report("the values of a step could not be read, its row stays empty: " + current_reason());
        reported = true;
      }
    }
    step.scalars = std::move(scalars);  // lets go of the slot
    {
      const std::lock_guard lock(mutex);
      --unread;
    }
    room.notify_one();
  }

  Report report;
  std::mutex mutex;  // events, unread, closed
  std::condition_variable not_empty, room;
  std::deque<Event> events;
  int unread = 0;
  bool closed = false;
  bool reported = false;  // the reader's alone
  std::mutex outlets_mutex;
  std::vector<std::unique_ptr<Outlet>> outlets;
  std::thread reader;  // last: it uses the others
};

EventBus::EventBus(std::function<void(const std::string&)> report)
    : state_(std::make_unique<State>(std::move(report))) {}

EventBus::~EventBus() = default;

void EventBus::add(std::unique_ptr<core::EventSink> sink) {
  const std::lock_guard lock(state_->outlets_mutex);
  state_->outlets.push_back(std::make_unique<Outlet>(std::move(sink), state_->report));
}

void EventBus::emit(core::Event event) { state_->emit(std::move(event)); }

}  // namespace stoker::io
