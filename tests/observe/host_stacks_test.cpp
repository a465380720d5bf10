// SPDX-License-Identifier: Apache-2.0
// Sampled stacks: threads that work are seen in the functions that they work in, and nothing is left afterwards. The
// table from samples that add up by hand.
#include "stoker/observe/profile/host_stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <thread>

#include "stoker/base/clock.h"

namespace stoker::observe::profile {

// Works for some CPU time. Not in a namespace without a name, so that its name is known.
constexpr int kLineOfWork = __LINE__ + 1;
__attribute__((noinline)) double work_of_host_stacks_test(double seconds) {
  double sum = 0;
  for (const double until = thread_cpu_s() + seconds; thread_cpu_s() < until;) {
    for (int i = 1; i < 20'000; ++i) {
      sum += 1.0 / i;
    }
  }
  return sum;
}

namespace {

using ::testing::HasSubstr;

HostSample sample(std::int32_t thread, std::vector<std::uintptr_t> frames) {
  HostSample made{.thread = thread, .depth = static_cast<std::int32_t>(frames.size())};
  std::ranges::copy(frames, made.frames.begin());
  return made;
}

const FunctionRow* find_row(const HostStacks& stacks, const std::string& part) {
  const auto found = std::ranges::find_if(
      stacks.functions, [&](const FunctionRow& row) { return row.function.find(part) != row.function.npos; });
  return found == stacks.functions.end() ? nullptr : &*found;
}

TEST(HostStacks, SelfAndTotalByFunction) {
  // Callers are known by the address behind the call: one byte before it is looked up.
  const NamePlaces named = [](std::span<const std::uintptr_t>) {
    return std::map<std::uintptr_t, CodePlace>{{100, {.function = "leaf", .file = "a.cpp", .line = 7, .own = true}},
                                               {101, {.function = "leaf", .file = "a.cpp", .line = 8, .own = true}},
                                               {199, {.function = "middle"}},
                                               {299, {.function = "main"}}};
  };
  const std::vector<HostSample> samples = {sample(1, {100, 200, 300}), sample(1, {101, 200, 200, 300}),
                                           sample(1, {101, 300}), sample(2, {199}), sample(2, {})};
  const HostStacks stacks = host_stacks(samples, named);
  EXPECT_EQ(stacks.samples, 5);
  const auto check = [&](const char* name, std::int64_t self, std::int64_t total) {
    const FunctionRow* const row = find_row(stacks, name);
    ASSERT_NE(row, nullptr) << name;
    EXPECT_EQ(row->self, self) << name;
    EXPECT_EQ(row->total, total) << name;
  };
  EXPECT_EQ(find_row(stacks, "leaf")->charged, 3);  // the innermost function of the program
  EXPECT_EQ(find_row(stacks, "middle")->charged, 0);
  check("leaf", 3, 3);
  check("middle", 1, 3);  // twice in one stack counts once
  check("main", 0, 3);
  EXPECT_EQ(find_row(stacks, "leaf")->line, 8);
}

TEST(HostStacks, ThreadsAreSeenWhereTheyWork) {
  std::atomic<bool> stop = false;
  std::jthread other([&] {
    ::pthread_setname_np(::pthread_self(), "other worker");
    while (!stop) {
      work_of_host_stacks_test(0.01);
    }
  });
  work_of_host_stacks_test(0.01);  // until the other one runs
  HostSampler sampler;
  ASSERT_EQ(sampler.missing(), "");
  work_of_host_stacks_test(0.3);
  const HostStacks stacks = host_stacks(sampler.stop());
  stop = true;
  EXPECT_GT(stacks.samples, 30);  // of 300 or more; timers may be coarse
  const FunctionRow* const work = find_row(stacks, "work_of_host_stacks_test");
  ASSERT_NE(work, nullptr);
  EXPECT_GT(static_cast<double>(work->total), 0.5 * static_cast<double>(stacks.samples));
  EXPECT_TRUE(work->own);
  EXPECT_TRUE(std::ranges::any_of(stacks.threads, [](const ThreadRow& row) { return row.name == "other worker"; }));
}

TEST(HostStacks, NothingIsTakenAfterwards) {
  {
    HostSampler sampler;
    work_of_host_stacks_test(0.05);
    EXPECT_FALSE(sampler.stop().empty());
  }
  ::raise(SIGPROF);  // one that was still on its way ends no process
  HostSampler again;
  EXPECT_EQ(again.missing(), "");
}

TEST(HostStacks, TwoAtATimeAreRefusedWithAReason) {
  HostSampler first;
  EXPECT_EQ(first.missing(), "");
  HostSampler second;
  EXPECT_THAT(second.missing(), HasSubstr("another profiler"));
  EXPECT_TRUE(second.stop().empty());
}

TEST(CodePlaces, WhatHasNoNameIsItsModule) {
  const std::vector<std::uintptr_t> nowhere = {8};
  EXPECT_EQ(code_places(nowhere).at(8).function, "(generated code)");
  const std::vector<std::uintptr_t> known = {reinterpret_cast<std::uintptr_t>(&work_of_host_stacks_test)};
  const CodePlace place = code_places(known).at(known[0]);
  EXPECT_TRUE(place.own);
  EXPECT_EQ(place.module, "observe_tests");
  if (std::system("addr2line --version > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "the source line is not checked: addr2line is not installed";
  }
  EXPECT_THAT(place.function, HasSubstr("work_of_host_stacks_test"));
  EXPECT_THAT(place.file, ::testing::EndsWith("host_stacks_test.cpp"));  // this file is compiled with -g1
  EXPECT_EQ(place.line, kLineOfWork);
}

}  // namespace
}  // namespace stoker::observe::profile
