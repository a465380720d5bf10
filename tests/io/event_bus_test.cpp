// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/event_bus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <set>
#include <stdexcept>
#include <thread>

#include "support/failing_new.h"

namespace stoker::io {
namespace {

using namespace core;
using ::testing::HasSubstr;

// Passes each event to a function, on the sink's thread.
class Probe final : public EventSink {
 public:
  Probe(bool every_step, std::function<void(const Event&)> use, std::function<void()> flushed = {})
      : every_step_(every_step), use_(std::move(use)), flushed_(std::move(flushed)) {}
  void on(const Event& event) override { use_(event); }
  void flush() override {
    if (flushed_) {
      flushed_();
    }
  }
  [[nodiscard]] bool wants_every_step() const override { return every_step_; }

 private:
  bool every_step_;
  std::function<void(const Event&)> use_;
  std::function<void()> flushed_;
};

class Pending final : public PendingScalars {
 public:
  explicit Pending(std::function<float()> read) : read_(std::move(read)) {}
  [[nodiscard]] Scalars read() const override {
    Scalars scalars;
    scalars.values[0] = read_();
    scalars.count = 1;
    return scalars;
  }

 private:
  std::function<float()> read_;
};

StepFinished step(std::int64_t number, std::function<float()> read = {}) {
  StepFinished event;
  event.step = number;
  if (read) {
    event.scalars = std::make_shared<Pending>(std::move(read));
  }
  return event;
}

// A sink that keeps the texts of findings, and passes other events to a function.
std::unique_ptr<Probe> listener(std::vector<std::string>& findings, std::function<void(const Event&)> use) {
  return std::make_unique<Probe>(true, [&findings, use = std::move(use)](const Event& event) {
    if (const auto* finding = std::get_if<Finding>(&event)) {
      findings.push_back(finding->text);
    } else {
      use(event);
    }
  });
}

// Opened once; any number of threads can wait for it.
class Gate {
 public:
  void open() {
    open_ = true;
    open_.notify_all();
  }
  void wait() const { open_.wait(false); }

 private:
  std::atomic<bool> open_ = false;
};

TEST(EventBus, DeliversEverythingInOrderBeforeItEnds) {
  std::vector<std::int64_t> steps;
  int flushes = 0;
  {
    EventBus bus;
    bus.add(std::make_unique<Probe>(
        true,
        [&](const Event& event) {
          if (const auto* each = std::get_if<StepFinished>(&event)) {
            steps.push_back(each->step);
            EXPECT_EQ(each->merged, 0);
          }
        },
        [&] { ++flushes; }));
    for (int i = 1; i <= 1000; ++i) {
      bus.emit(step(i));
    }
  }
  ASSERT_EQ(steps.size(), 1000U);
  EXPECT_TRUE(std::ranges::is_sorted(steps));
  EXPECT_GE(flushes, 1);
}

TEST(EventBus, FlushesWhenItIsQuiet) {
  Gate flushed;
  EventBus bus;
  bus.add(std::make_unique<Probe>(
      false, [](const Event&) {}, [&] { flushed.open(); }));
  bus.emit(step(1));
  flushed.wait();  // hangs if flush() comes only at the end
}

TEST(EventBus, FlushWaitsForTheFilesAndNotForASleepingSink) {
  constexpr int kSteps = 40, kRounds = 20;
  Gate gate;
  std::atomic<int> received = 0, flushed = 0;
  EventBus bus;
  bus.add(std::make_unique<Probe>(true, [&](const Event&) { gate.wait(); }));
  bus.add(std::make_unique<Probe>(
              true, [&](const Event&) { ++received; }, [&] { flushed = received.load(); }),
          true);
  for (int round = 1; round <= kRounds; ++round) {
    for (int i = 0; i < kSteps; ++i) {
      bus.emit(step(i, [] { return 1.0F; }));
    }
    bus.flush();  // hangs if it waits for the first sink
    EXPECT_EQ(flushed, round * kSteps);
  }
  gate.open();
}

TEST(EventBus, FlushEndsWhenTheFileIsGivenUp) {
  std::atomic<int> reports = 0;
  EventBus bus;
  bus.flush();  // nobody to wait for
  bus.add(
      std::make_unique<Probe>(true, [&](const Event& event) { reports += std::holds_alternative<Finding>(event); }));
  bus.add(std::make_unique<Probe>(
              true, [](const Event&) {}, [] { throw std::runtime_error("no space left"); }),
          true);
  bus.add(std::make_unique<Probe>(true, [](const Event&) { throw std::runtime_error("no space left"); }), true);
  bus.emit(step(1));
  bus.flush();
  bus.flush();
  bus.emit(step(2));
  bus.flush();
  while (reports < 2) {
    std::this_thread::yield();
  }
}

TEST(EventBus, ASleepingSinkMissesStepsAndNothingElse) {
  constexpr int kSteps = 3000;
  Gate gate;
  std::int64_t delivered = 0, merged = 0, findings = 0, last = 0;
  std::int64_t complete = 0;
  {
    EventBus bus;
    bus.add(std::make_unique<Probe>(false, [&](const Event& event) {
      gate.wait();
      if (const auto* each = std::get_if<StepFinished>(&event)) {
        EXPECT_GT(each->step, last);
        last = each->step;
        ++delivered;
        merged += each->merged;
      } else {
        ++findings;
      }
    }));
    bus.add(std::make_unique<Probe>(
        true, [&](const Event& event) { complete += std::holds_alternative<StepFinished>(event) ? 1 : 0; }));
    for (int i = 1; i <= kSteps; ++i) {  // returns although the first sink takes nothing
      bus.emit(step(i, [] { return 1.0F; }));
      if (i % 100 == 0) {
        bus.emit(Finding{"something"});
      }
    }
    gate.open();
  }
  EXPECT_EQ(delivered + merged, kSteps);
  EXPECT_GT(merged, 0);
  EXPECT_EQ(last, kSteps);
  EXPECT_EQ(findings, kSteps / 100);
  EXPECT_EQ(complete, kSteps);
}

TEST(EventBus, ReadsScalarsOnceOnAThreadOfItsOwn) {
  std::set<std::thread::id> readers, sinks;
  std::atomic<int> reads = 0;
  {
    EventBus bus;
    for (int sink = 0; sink < 2; ++sink) {
      bus.add(std::make_unique<Probe>(true, [&, sink](const Event& event) {
        if (sink == 0) {
          sinks.insert(std::this_thread::get_id());
        }
        const Scalars scalars = std::get<StepFinished>(event).scalars->read();
        EXPECT_EQ(scalars.values[0], static_cast<float>(std::get<StepFinished>(event).step));
      }));
    }
    for (int i = 1; i <= 100; ++i) {
      bus.emit(step(i, [&, i] {
        ++reads;
        readers.insert(std::this_thread::get_id());
        return static_cast<float>(i);
      }));
    }
  }
  EXPECT_EQ(reads, 100);
  EXPECT_EQ(readers.size(), 1U);
  EXPECT_EQ(readers.count(std::this_thread::get_id()) + readers.count(*sinks.begin()), 0U);
}

// As in the device's ring, step s + 64 overwrites the slot of step s.
TEST(EventBus, NeverReadsASlotThatWasUsedAgain) {
  constexpr int kSteps = 5000;
  std::array<std::atomic<int>, 64> ring{};
  int wrong = 0;
  {
    EventBus bus;
    bus.add(std::make_unique<Probe>(true, [&](const Event& event) {
      const auto& each = std::get<StepFinished>(event);
      wrong += each.scalars->read().values[0] != static_cast<float>(each.step);
    }));
    for (int i = 1; i <= kSteps; ++i) {
      std::atomic<int>& slot = ring[static_cast<std::size_t>(i) % ring.size()];
      slot = i;
      bus.emit(step(i, [&slot] { return static_cast<float>(slot); }));
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST(EventBus, WaitsForTheDeviceAndForNothingElse) {
  Gate gate;
  std::atomic<int> emitted = 0;
  EventBus bus;
  std::thread loop([&] {
    for (int i = 1; i <= 100; ++i) {
      bus.emit(step(i, [&gate] {
        gate.wait();
        return 0.0F;
      }));
      ++emitted;
    }
  });
  while (emitted < 48) {  // 48 is the bound; with a lower one this would hang
    std::this_thread::yield();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(emitted, 48);
  gate.open();
  loop.join();
}

TEST(EventBus, ASinkThatFailsIsGivenUpAndTheOthersGoOn) {
  std::vector<std::string> reports;
  int calls = 0, others = 0;
  {
    EventBus bus;
    bus.add(std::make_unique<Probe>(true, [&](const Event&) {
      ++calls;
      throw std::runtime_error("no space left");
    }));
    bus.add(listener(reports, [&](const Event&) { ++others; }));
    for (int i = 1; i <= 50; ++i) {
      bus.emit(step(i));
    }
  }
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(others, 50);
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_THAT(reports[0], HasSubstr("no space left"));
}

TEST(EventBus, AFileThatFailsAtItsLastFlushIsReportedToTheOthers) {
  std::vector<std::string> reports;
  {
    EventBus bus;
    bus.add(std::make_unique<Probe>(
                true, [](const Event&) {}, [] { throw std::runtime_error("no space left"); }),
            true);
    bus.add(listener(reports, [](const Event&) {}));
  }
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_THAT(reports[0], HasSubstr("no space left"));
}

// The threads of the bus need no memory: every event arrives, steps perhaps as merged steps.
TEST(EventBus, DeliversWithoutMemory) {
  constexpr int kSteps = 2000;
  const testing::MayAllocate here;
  Gate gate;
  std::int64_t delivered = 0, merged = 0, findings = 0, values = 0;
  std::atomic<std::int64_t> all = 0;
  {
    EventBus bus;
    bus.add(std::make_unique<Probe>(false, [&](const Event& event) {
      gate.wait();
      const auto* each = std::get_if<StepFinished>(&event);
      delivered += each != nullptr;
      merged += each != nullptr ? each->merged : 0;
      findings += each == nullptr;
    }));
    bus.add(std::make_unique<Probe>(true,
                                    [&](const Event& event) {
                                      const auto* each = std::get_if<StepFinished>(&event);
                                      values += each != nullptr &&
                                                each->scalars->read().values[0] == static_cast<float>(each->step);
                                      ++all;
                                    }),
            true);
    const testing::NoMemory none;
    for (int i = 1; i <= kSteps; ++i) {
      bus.emit(step(i, [i] { return static_cast<float>(i); }));
      if (i % 100 == 0) {
        bus.emit(Finding{"a text that is too long for the small buffer of a string"});
      }
    }
    bus.flush();
    EXPECT_EQ(all, kSteps + kSteps / 100);
    gate.open();
  }
  EXPECT_EQ(delivered + merged, kSteps);
  EXPECT_EQ(findings, kSteps / 100);
  EXPECT_EQ(values, kSteps);
}

// There is no memory to report to the other sinks why it was given up, so the loop gets the error.
TEST(EventBus, ASinkThatFailsForWantOfMemoryIsAnErrorOfTheLoop) {
  const testing::MayAllocate here;
  int others = 0, emitted = 0;
  {
    EventBus bus;
    bus.add(std::make_unique<Probe>(true, [](const Event&) { throw std::bad_alloc(); }));
    bus.add(std::make_unique<Probe>(true, [&](const Event&) { ++others; }));
    const testing::NoMemory none;
    EXPECT_THROW(
        while (true) {
          ++emitted;
          bus.emit(step(emitted));
          std::this_thread::yield();
        },
        std::bad_alloc);
    bus.emit(step(++emitted));  // thrown only once
  }
  EXPECT_EQ(others, emitted);
}

// If a loader's thread emitted and got the error, it would end the process or swallow the error.
TEST(EventBus, AnErrorOfItsThreadsIsThrownAtItsMakerAlone) {
  const testing::MayAllocate here;
  EventBus bus;
  std::atomic<int> seen = 0;
  bus.add(std::make_unique<Probe>(true, [](const Event&) { throw std::bad_alloc(); }));
  bus.add(std::make_unique<Probe>(true, [&](const Event&) { ++seen; }));
  const testing::NoMemory none;
  bool thrown_elsewhere = false;
  std::thread([&] {
    const testing::MayAllocate there;
    try {
      for (int i = 1; seen < 500; ++i) {  // the failing sink is given up long before this
        bus.emit(step(i));
        std::this_thread::yield();
      }
    } catch (const std::bad_alloc&) {
      thrown_elsewhere = true;
    }
  }).join();
  ASSERT_FALSE(thrown_elsewhere);
  EXPECT_THROW(
      while (true) {
        bus.emit(step(1));
        std::this_thread::yield();
      },
      std::bad_alloc);
}

TEST(EventBus, AnEventWithoutMemoryIsNotEmitted) {
  const auto lost = step(1, [] { return 1.0F; });
  int delivered = 0;
  {
    EventBus bus;
    bus.add(std::make_unique<Probe>(true, [&](const Event&) { ++delivered; }));
    for (int i = 0; i < 100; ++i) {  // more than may wait to be read
      const testing::NoMemory none;
      EXPECT_THROW(bus.emit(lost), std::bad_alloc);
    }
    bus.emit(lost);
  }
  EXPECT_EQ(delivered, 1);
}

TEST(EventBus, AStepWhoseValuesCannotBeReadArrivesWithoutThem) {
  std::vector<std::string> reports;
  int empty = 0;
  {
    EventBus bus;
    bus.add(listener(reports, [&](const Event& event) { empty += std::get<StepFinished>(event).scalars == nullptr; }));
    for (int i = 1; i <= 100; ++i) {
      bus.emit(step(i, []() -> float { throw std::runtime_error("device gone"); }));
    }
  }
  EXPECT_EQ(empty, 100);
  EXPECT_EQ(reports.size(), 1U);
}

}  // namespace
}  // namespace stoker::io
