// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/event_bus.h"

#include <condition_variable>
#include <exception>
#include <future>
#include <mutex>
#include <thread>
#include <variant>
#include <vector>

#include "stoker/io/sink_queue.h"

namespace stoker::io {
namespace {

using core::Event;
using core::StepFinished;

constexpr std::size_t kMergeBeyond = 256;             // events that wait for a slow sink before its steps are merged
constexpr int kMostUnread = 48;                       // of the ring's 64 slots; the rest are the loop's head start
constexpr int kGather = 24;                           // steps that the reader takes at a time ...
constexpr std::chrono::milliseconds kGatherTime{20};  // ... or those of this time: waking a thread costs the loop 10 us
constexpr std::chrono::milliseconds kQuiet{static_cast<int>(core::kQuietSeconds * 1000)};

// What a step's scalars are once they are read: sinks can keep them as long as they like.
class ReadScalars final : public core::PendingScalars {
 public:
  explicit ReadScalars(const core::Scalars& scalars) : scalars_(scalars) {}
  [[nodiscard]] core::Scalars read() const override { return scalars_; }

 private:
  core::Scalars scalars_;
};

// Asks a sink to flush, once it comes out of the queue. The wait is over when the last copy is gone: after the flush,
// or with the queue of a sink that was given up.
using FlushRequest = std::shared_ptr<std::promise<void>>;
using Parcel = std::variant<Event, FlushRequest>;

StepFinished* step_in(Parcel& parcel) {
  auto* event = std::get_if<Event>(&parcel);
  return event == nullptr ? nullptr : std::get_if<StepFinished>(event);
}

bool merge_steps(Parcel& newest, Parcel& next) {
  StepFinished* older = step_in(newest);
  StepFinished* newer = step_in(next);
  if (older == nullptr || newer == nullptr) {
    return false;
  }
  newer->merged += older->merged + 1;
  *older = std::move(*newer);
  return true;
}

bool has_scalars(Parcel& parcel) {
  const StepFinished* step = step_in(parcel);
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

// Tells the other sinks, as a Finding.
using Report = std::function<void(std::string)>;

// One sink, its queue and its thread.
class Outlet {
 public:
  Outlet(std::unique_ptr<core::EventSink> sink, bool awaited, const Report& report)
      : sink_(std::move(sink)),
        awaited_(awaited),
        report_(report),
        queue_(kMergeBeyond, sink_->wants_every_step() ? nullptr : merge_steps),
        thread_([this] { deliver(); }) {}
  ~Outlet() {
    queue_.close();
    thread_.join();
  }
  void push(const Parcel& parcel) {
    if (awaited_ || std::holds_alternative<Event>(parcel)) {
      queue_.push(parcel);
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
      report_("a log is given up, the run goes on: " + current_reason());
      queue_.abandon();  // and the request to flush in our hands goes: whoever waits for it may rely on the report
    }
  }

  // False for a request to flush.
  bool take(Parcel& parcel) {
    if (const auto* event = std::get_if<Event>(&parcel)) {
      sink_->on(*event);
      return true;
    }
    sink_->flush();
    std::get<FlushRequest>(parcel).reset();
    return false;
  }

  std::unique_ptr<core::EventSink> sink_;
  bool awaited_;
  const Report& report_;
  SinkQueue<Parcel> queue_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace

struct EventBus::State {
  State() : report([this](std::string text) { emit(core::Finding{std::move(text)}); }), reader([this] { read(); }) {}
  ~State() {
    {
      const std::lock_guard lock(mutex);
      closed = true;
    }
    not_empty.notify_one();
    reader.join();
    while (!outlets.empty()) {
      outlets.erase(outlets.begin());  // delivers what it still holds
      read();                          // and why it failed, if it did, to those that are left
    }
  }

  void emit(Parcel parcel) {
    std::unique_lock lock(mutex);
    if (has_scalars(parcel)) {
      room.wait(lock, [&] { return unread < kMostUnread; });
      ++unread;
    }
    urgent = urgent || step_in(parcel) == nullptr || unread >= kGather;
    const bool wake = urgent || parcels.empty();
    parcels.push_back(std::move(parcel));
    lock.unlock();
    if (wake) {
      not_empty.notify_one();
    }
  }

  // The one thread that waits for the device. It never waits for a sink, so slots come back in time.
  void read() {
    std::vector<Parcel> batch;
    while (next(batch)) {
      for (Parcel& parcel : batch) {
        if (has_scalars(parcel)) {
          take_scalars(*step_in(parcel));
        }
        const std::lock_guard lock(outlets_mutex);
        for (const auto& outlet : outlets) {
          outlet->push(parcel);
        }
      }
    }
  }
  // All that waits, once it is enough or something else than a step; false at the end.
  bool next(std::vector<Parcel>& batch) {
    batch.clear();
    std::unique_lock lock(mutex);
    not_empty.wait(lock, [&] { return closed || !parcels.empty(); });
    not_empty.wait_for(lock, kGatherTime, [&] { return closed || urgent; });
    urgent = false;
    batch.swap(parcels);
    return !batch.empty();
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
  std::mutex mutex;  // parcels, unread, urgent, closed
  std::condition_variable not_empty, room;
  std::vector<Parcel> parcels;
  int unread = 0;
  bool urgent = false;  // the reader should not wait for more
  bool closed = false;
  bool reported = false;  // the reader's alone
  std::mutex outlets_mutex;
  std::vector<std::unique_ptr<Outlet>> outlets;
  std::thread reader;  // last: it uses the others
};

EventBus::EventBus() : state_(std::make_unique<State>()) {}
EventBus::~EventBus() = default;

void EventBus::add(std::unique_ptr<core::EventSink> sink, bool awaited) {
  const std::lock_guard lock(state_->outlets_mutex);
  state_->outlets.push_back(std::make_unique<Outlet>(std::move(sink), awaited, state_->report));
}

void EventBus::emit(core::Event event) { state_->emit(std::move(event)); }

void EventBus::flush() {
  auto request = std::make_shared<std::promise<void>>();
  const std::future<void> done = request->get_future();
  state_->emit(std::move(request));
  done.wait();
}

}  // namespace stoker::io
