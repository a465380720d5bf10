// SPDX-License-Identifier: Apache-2.0
// Collectives on devices without a device: a backend whose collectives end when they are told to. What waits for a rank
// that is gone is cut off, and what was cut off is an error. The real one is in nccl_gpu_test.cpp.
#include "stoker/parallel/device_group.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "stoker/base/error.h"
#include "stoker/parallel/lifeline.h"
#include "support/temp_folder.h"

namespace stoker::parallel {
namespace {

using namespace std::chrono_literals;

std::atomic<bool> done, aborted, ended;

class Endless final : public c10d::Work {
 public:
  bool isCompleted() override { return done; }
};

class Device final : public c10d::Backend {
 public:
  Device(int rank, int ranks) : c10d::Backend(rank, ranks) {}
  c10d::ErrorType getError() override { return c10d::ErrorType::SUCCESS; }
  void abort() override { aborted = done = true; }
  void shutdown() override { ended = true; }
};

c10::intrusive_ptr<c10d::Backend> make_device(const c10::intrusive_ptr<c10d::Store>&, int rank, int ranks,
                                              std::chrono::milliseconds) {
  return c10::make_intrusive<Device>(rank, ranks);
}

std::shared_ptr<DeviceGroup> group(DeviceGroupMaker* make = make_device) {
  done = aborted = ended = false;
  return std::make_shared<DeviceGroup>(c10::make_intrusive<c10d::HashStore>(), 0, 2, 1min, make);
}

void start(DeviceGroup& group) {
  (void)group.start([](c10d::Backend&) { return c10::make_intrusive<Endless>(); });
}

TEST(DeviceGroup, SettlesWhenAllIsDone) {
  {
    const auto whole = group();
    EXPECT_FALSE(whole->busy());
    whole->settle();  // nothing was started
    start(*whole);
    EXPECT_TRUE(whole->busy());
    EXPECT_THROW(whole->settle(20ms), RankError);
    std::jthread later([] {
      std::this_thread::sleep_for(20ms);
      done = true;
    });
    whole->settle();
    EXPECT_FALSE(whole->busy());
  }
  EXPECT_TRUE(ended);
  EXPECT_FALSE(aborted);
}

TEST(DeviceGroup, WhatIsCutOffIsAnError) {
  {
    const auto whole = group();
    whole->cut_off();  // there is nothing yet
    EXPECT_FALSE(aborted);
    start(*whole);
    std::jthread other([&] { whole->cut_off(); });
    EXPECT_THROW(whole->settle(), RankError);
    other.join();
    EXPECT_TRUE(aborted);
    EXPECT_THROW(whole->settle(), RankError) << "although nothing runs";
  }
  EXPECT_FALSE(ended) << "the other ranks do not take part";
}

TEST(DeviceGroup, ThatWaitsWhenItEndsIsCutOff) {
  start(*group());
  EXPECT_TRUE(aborted);
}

TEST(DeviceGroup, WithoutNcclIsAConfigError) {
  if (!why_no_device_group().empty()) {
    EXPECT_THROW(start(*group(nullptr)), ConfigError);
  }
}

Place place_in(const stoker::testing::TempFolder& folder, int rank) {
  Place place;
  place.rank = place.local_rank = rank;
  place.ranks = place.local_ranks = 2;
  place.meeting.file = (folder / "meeting").native();
  return place;
}

// The main thread of a rank waits for its device, and so for ever.
TEST(DeviceGroup, LifelineCutsItOffWhenARankLeaves) {
  const stoker::testing::TempFolder folder;
  const auto waits = group();
  const auto lifeline = [&](int rank, std::shared_ptr<DeviceGroup> device) {
    return std::make_unique<Lifeline>(std::make_unique<Store>(place_in(folder, rank), 5s),
                                      LifelineOptions{rank, {this_process(), this_process()}, "", 1min, device});
  };
  const auto here = lifeline(0, waits), there = lifeline(1, nullptr);
  start(*waits);
  there->leave(std::runtime_error("no more data"));
  EXPECT_FALSE(aborted) << "what the rank took part in may still complete";
  EXPECT_THROW(waits->settle(), RankError);
  EXPECT_TRUE(aborted);
}

// The number of a process that has ended.
int ended_process() {
  const int child = ::fork();
  if (child == 0) {
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  return child;
}

TEST(DeviceGroup, LifelineCutsItOffWhenAProcessOfThisMachineEnds) {
  const stoker::testing::TempFolder folder;
  const auto waits = group();
  Member gone = this_process();
  gone.process = ended_process();
  const Lifeline lifeline(std::make_unique<Store>(place_in(folder, 0), 5s),
                          LifelineOptions{0, {this_process(), gone}, "", 1min, waits});
  start(*waits);
  EXPECT_THROW(waits->settle(), RankError);
  EXPECT_TRUE(aborted);
}

}  // namespace
}  // namespace stoker::parallel
