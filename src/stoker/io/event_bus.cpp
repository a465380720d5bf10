// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/event_bus.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <future>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "stoker/base/start_thread.h"
#include "stoker/io/sink_queue.h"

namespace stoker::io {
namespace {

using core::Event;
using core::StepFinished;

constexpr std::size_t kMergeBeyond = 256;             // queued events of a slow sink above which its steps are merged
constexpr int kMostUnread = 48;                       // of the ring's 64 slots; the rest let the loop run ahead
constexpr int kGather = 24;                           // steps that the reader takes at a time ...
constexpr std::chrono::milliseconds kGatherTime{20};  // ... or the steps of this time: a wake-up costs 10 us
constexpr std::chrono::milliseconds kQuiet{static_cast<int>(core::kQuietSeconds * 1000)};

// The scalars of a step after reading: sinks can keep them for any time.
class ReadScalars final : public core::PendingScalars {
 public:
  void take(const core::Scalars& scalars) { scalars_ = scalars; }
  [[nodiscard]] core::Scalars read() const override { return scalars_; }

 private:
  core::Scalars scalars_;
};

// Asks a sink to flush when it leaves the queue. The wait ends when the last copy is destroyed: after the flush, or
// with the queue of a dropped sink. A promise destroyed without a value would allocate memory.
struct Flush {
  std::promise<void> done;
  Flush() = default;
  ~Flush() { done.set_value(); }
  Flush(const Flush&) = delete;
  Flush& operator=(const Flush&) = delete;
};
using FlushRequest = std::shared_ptr<Flush>;

// A message to one sink: a shared event, or a request.
struct Parcel {
  std::shared_ptr<const Event> event;
  FlushRequest request;
  std::int64_t merged = 0;  // earlier steps merged into this one
};

// All memory of a message, allocated by the emitting thread. The threads of the bus allocate nothing, since they could
// not report an allocation failure.
struct Message {
  std::shared_ptr<Event> event;  // null: a request
  std::shared_ptr<ReadScalars> values;
  std::list<Parcel> parcels;  // one per sink
};

StepFinished* step_of(const Message& message) { return std::get_if<StepFinished>(message.event.get()); }
bool is_step(const Parcel& parcel) { return std::get_if<StepFinished>(parcel.event.get()) != nullptr; }

bool merge_steps(Parcel& newest, Parcel& next) {
  if (!is_step(newest) || !is_step(next)) {
    return false;
  }
  next.merged += newest.merged + 1;
  newest = std::move(next);
  return true;
}

bool has_scalars(const Message& message) {
  const StepFinished* step = step_of(message);
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

// Reports to the other sinks, as a Finding: a text and the exception that is being handled. Never throws.
using Report = std::function<void(const char*)>;

// One sink with its queue and its thread.
class Outlet {
 public:
  Outlet(std::unique_ptr<core::EventSink> sink, bool awaited, const Report& report)
      : sink_(std::move(sink)),
        awaited_(awaited),
        report_(report),
        queue_(kMergeBeyond, sink_->wants_every_step() ? nullptr : merge_steps),
        thread_(start_thread("io.event_bus", "writes a log", [this] { deliver(); })) {}
  ~Outlet() {
    queue_.close();
    thread_.join();
  }
  void push(std::list<Parcel> one) {
    if (awaited_ || one.front().event) {
      queue_.push(std::move(one));
    }
  }

 private:
  void deliver() {
    Parcel parcel;
    try {
      bool flushed = true;
      while (true) {
        switch (queue_.pop(parcel, flushed ? std::chrono::milliseconds(0) : kQuiet)) {
          case Wake::kValue: flushed = !take(parcel); break;
          case Wake::kQuiet:
            sink_->flush();
            flushed = true;
            break;
          case Wake::kClosed: sink_->flush(); return;
        }
      }
    } catch (...) {
      report_("a log failed and is closed, the run continues: ");
      try {
        sink_->flush();  // what is complete: a log that had no memory for one event keeps those before it
      } catch (...) {    // NOLINT(bugprone-empty-catch): reported already
      }
      queue_.abandon();  // also ends our request to flush; its waiter can rely on the report
    }
  }

  // False for a request to flush.
  bool take(Parcel& parcel) {
    if (!parcel.event) {
      sink_->flush();
      parcel.request.reset();
      return false;
    }
    if (parcel.merged == 0) {
      sink_->on(*parcel.event);
    } else {
      Event step = *parcel.event;
      std::get<StepFinished>(step).merged = parcel.merged;
      sink_->on(step);
    }
    return true;
  }

  std::unique_ptr<core::EventSink> sink_;
  bool awaited_;
  const Report& report_;
  SinkQueue<Parcel> queue_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace

struct EventBus::State {
  State()
      : report([this](const char* what) { tell(what); }),
        reader(start_thread("io.event_bus", "reads the values of steps", [this] { read(); })) {}
  ~State() {
    {
      const std::lock_guard lock(mutex);
      closed = true;
    }
    not_empty.notify_one();
    reader.join();
    while (!outlets.empty()) {
      outlets.erase(outlets.begin());  // delivers what is still queued
      read();                          // and reports a failure to the remaining sinks
    }
  }

  // Without memory for it, nothing happens. An error of the bus's own threads is thrown in the thread that made the
  // bus, after its event was queued: other threads, such as loaders, would end the process or lose the error.
  void emit(std::shared_ptr<Event> event, const FlushRequest& request) {
    std::list<Message> one(1);
    Message& message = one.front();
    message.event = std::move(event);
    message.parcels.assign(sinks, {message.event, request});
    const bool scalars = message.event && has_scalars(message);
    if (scalars) {
      message.values = std::make_shared<ReadScalars>();
    }
    const bool step = message.event && step_of(message) != nullptr;
    std::unique_lock lock(mutex);
    if (scalars) {
      room.wait(lock, [&] { return unread < kMostUnread; });
      ++unread;
    }
    urgent = urgent || !step || unread >= kGather;
    const bool wake = urgent || messages.empty();
    messages.splice(messages.end(), one);
    const std::exception_ptr error =
        std::this_thread::get_id() == maker ? std::exchange(failure, nullptr) : std::exception_ptr();
    lock.unlock();
    if (wake) {
      not_empty.notify_one();
    }
    if (error) {
      std::rethrow_exception(error);
    }
  }

  // Called on threads of the bus: a report that fails for lack of memory is thrown in the thread that made the bus.
  void tell(const char* what) noexcept {
    try {
      emit(std::make_shared<Event>(core::Finding{what + current_reason()}), nullptr);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  }

  // The only thread that waits for the device. It never waits for a sink, so slots are free in time.
  void read() {
    std::list<Message> batch;
    while (next(batch)) {
      for (Message& message : batch) {
        if (message.values) {
          take_scalars(message);
        }
        const std::lock_guard lock(outlets_mutex);
        for (const auto& outlet : outlets) {
          if (message.parcels.empty()) {  // emitted before this sink was added
            break;
          }
          std::list<Parcel> one;
          one.splice(one.end(), message.parcels, message.parcels.begin());
          outlet->push(std::move(one));
        }
      }
    }
  }
  // All waiting messages, once there are enough or one is not a step; false at the end.
  bool next(std::list<Message>& batch) {
    batch.clear();
    std::unique_lock lock(mutex);
    not_empty.wait(lock, [&] { return closed || !messages.empty(); });
    not_empty.wait_for(lock, kGatherTime, [&] { return closed || urgent; });
    urgent = false;
    batch.swap(messages);
    return !batch.empty();
  }
  void take_scalars(const Message& message) {
    StepFinished& step = *step_of(message);
    try {
      message.values->take(step.scalars->read());
      step.scalars = message.values;  // frees the slot
    } catch (...) {
      step.scalars.reset();
      if (!reported) {
        report("the values of a step could not be read, its row stays empty: ");
        reported = true;
      }
    }
    {
      const std::lock_guard lock(mutex);
      --unread;
    }
    room.notify_one();
  }

  Report report;
  std::atomic<std::size_t> sinks = 0;
  const std::thread::id maker = std::this_thread::get_id();
  std::mutex mutex;  // guards the members below, up to failure
  std::condition_variable not_empty, room;
  std::list<Message> messages;
  int unread = 0;
  bool urgent = false;  // the reader should not wait for more
  bool closed = false;
  std::exception_ptr failure;  // of a thread of the bus, for the next emit() of the bus's maker
  bool reported = false;       // only used by the reader
  std::mutex outlets_mutex;
  std::vector<std::unique_ptr<Outlet>> outlets;
  std::jthread reader;  // last: it uses the others
};

EventBus::EventBus() : state_(std::make_unique<State>()) {}
EventBus::~EventBus() = default;

void EventBus::add(std::unique_ptr<core::EventSink> sink, bool awaited) {
  const std::lock_guard lock(state_->outlets_mutex);
  state_->outlets.push_back(std::make_unique<Outlet>(std::move(sink), awaited, state_->report));
  state_->sinks = state_->outlets.size();
}

void EventBus::emit(core::Event event) { state_->emit(std::make_shared<Event>(std::move(event)), nullptr); }

void EventBus::flush() {
  auto request = std::make_shared<Flush>();
  const std::future<void> done = request->done.get_future();
  state_->emit(nullptr, std::exchange(request, nullptr));
  done.wait();
}

}  // namespace stoker::io
