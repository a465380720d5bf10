// SPDX-License-Identifier: Apache-2.0
// Sampled host code: threads that work are seen in the functions that they work in, and nothing is left afterwards. The
// table from samples that add up by hand.
#include "stoker/observe/profile/host_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/auxv.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <thread>

#include "stoker/base/clock.h"
#include "stoker/base/fmt.h"
#include "stoker/observe/profile/code_places.h"

namespace stoker::observe::profile {

// Works for some CPU time. Not in a namespace without a name, so that its name is known.
constexpr int kLineOfWork = __LINE__ + 1;
__attribute__((noinline)) double work_of_host_code_test(double seconds) {
  double sum = 0;
  for (const double until = thread_cpu_s() + seconds; thread_cpu_s() < until;) {
    for (int i = 1; i < 200'000; ++i) {
      sum += 1.0 / i;
    }
  }
  return sum;
}

namespace {

using ::testing::HasSubstr;

const FunctionRow* find_row(const HostCode& code, const std::string& part) {
  const auto found = std::ranges::find_if(
      code.functions, [&](const FunctionRow& row) { return row.function.find(part) != row.function.npos; });
  return found == code.functions.end() ? nullptr : &*found;
}

struct Taken {
  std::vector<HostSample> samples;
  bool full = false;
};

// Works longer each time, until samples come, and until they do not fit if at most `most` do. The kernel looks at
// timers when its clock ticks, and on a busy machine few ticks meet the thread.
Taken taken_at_work(std::size_t most = HostSampler::kMost) {
  for (double seconds = 0.05;; seconds *= 2) {
    HostSampler sampler(most);
    work_of_host_code_test(seconds);
    Taken taken;
    taken.samples = sampler.stop();
    taken.full = sampler.full();
    if (seconds > 5 || taken.full || (most == HostSampler::kMost && !taken.samples.empty())) {
      return taken;
    }
  }
}

TEST(HostCode, SamplesByFunctionAndLine) {
  const NamePlaces named = [](std::span<const std::uintptr_t>) {
    return std::map<std::uintptr_t, CodePlace>{{100, {.function = "work", .file = "a.cpp", .line = 7, .own = true}},
                                               {101, {.function = "work", .file = "a.cpp", .line = 8, .own = true}},
                                               {200, {.function = "other"}}};
  };
  const std::vector<HostSample> samples = {{1, 100}, {1, 101}, {1, 101}, {2, 200}, {2, 5}};
  const HostCode code = host_code(samples, named);
  EXPECT_EQ(code.samples, 5);
  ASSERT_EQ(code.functions.size(), 2U);
  EXPECT_EQ(code.functions[0].function, "work");
  EXPECT_EQ(code.functions[0].samples, 3);
  EXPECT_EQ(code.functions[0].line, 8);
  EXPECT_TRUE(code.functions[0].own);
  EXPECT_EQ(code.functions[1].samples, 1);
  EXPECT_EQ(code.functions[1].line, 0);
}

TEST(HostCode, ThreadsAreSeenWhereTheyWork) {
  std::atomic<bool> stop = false;
  std::jthread other([&] {
    ::pthread_setname_np(::pthread_self(), "other worker");
    while (!stop) {
      work_of_host_code_test(0.01);
    }
  });
  const auto has_other = [](const HostCode& code) {
    return std::ranges::any_of(code.threads, [](const ThreadRow& row) { return row.name == "other worker"; });
  };
  HostCode code;
  for (double seconds = 0.3; seconds < 10 && (code.samples <= 30 || !has_other(code)); seconds *= 2) {
    work_of_host_code_test(0.01);  // until the other one runs
    HostSampler sampler;
    ASSERT_EQ(sampler.missing(), "");
    work_of_host_code_test(seconds);
    code = host_code(sampler.stop());
  }
  stop = true;
  EXPECT_GT(code.samples, 30);
  const FunctionRow* const work = find_row(code, "work_of_host_code_test");
  std::string seen;
  for (const FunctionRow& row : code.functions) {
    seen += fmt::format("{} {} ({}), ", row.samples, row.function, row.module);
  }
  ASSERT_NE(work, nullptr) << seen;
  EXPECT_GT(static_cast<double>(work->samples), 0.5 * static_cast<double>(code.samples));
  EXPECT_TRUE(work->own);
  EXPECT_TRUE(has_other(code));
}

// The kernel's own code in the process has a base of its own, and comes before or after the program's.
TEST(HostCode, CodeOfTheKernelDoesNotMoveTheProgram) {
  const auto kernel = static_cast<std::uintptr_t>(::getauxval(AT_SYSINFO_EHDR));
  if (kernel == 0) {
    GTEST_SKIP() << "this kernel gives processes no code of its own";
  }
  const auto work = reinterpret_cast<std::uintptr_t>(&work_of_host_code_test) + 1;
  for (const std::vector<std::uintptr_t>& addresses :
       {std::vector<std::uintptr_t>{work, kernel + 0x40}, {kernel + 0x40, work}}) {
    const auto places = code_places(addresses);
    EXPECT_THAT(places.at(work).function, ::testing::HasSubstr("work_of_host_code_test"));
    EXPECT_TRUE(places.at(work).own);
    EXPECT_FALSE(places.at(kernel + 0x40).own);
  }
}

TEST(HostCode, NothingIsTakenAfterwards) {
  EXPECT_FALSE(taken_at_work().samples.empty());
  ::raise(SIGPROF);  // one that was still on its way ends no process
  HostSampler again;
  EXPECT_EQ(again.missing(), "");
}

TEST(HostCode, MoreSamplesThanFitAreTold) {
  const Taken few = taken_at_work(/*most=*/3);
  EXPECT_EQ(few.samples.size(), 3U);
  EXPECT_TRUE(few.full);
  const Taken enough = taken_at_work();
  EXPECT_FALSE(enough.samples.empty());
  EXPECT_FALSE(enough.full);
}

// 200,000 samples are 25 seconds of any number of cores.
TEST(HostCode, ManyThreadsAreSampledLessOften) {
  EXPECT_DOUBLE_EQ(HostSampler::every(1), 0.001);
  EXPECT_DOUBLE_EQ(HostSampler::every(8), 0.001);
  EXPECT_DOUBLE_EQ(HostSampler::every(32), 0.004);
  EXPECT_DOUBLE_EQ(HostSampler::every(800), 0.1);
}

TEST(HostCode, TwoAtATimeAreRefusedWithAReason) {
  HostSampler first;
  EXPECT_EQ(first.missing(), "");
  HostSampler second;
  EXPECT_THAT(second.missing(), HasSubstr("another profiler"));
  EXPECT_TRUE(second.stop().empty());
}

TEST(CodePlaces, WhatHasNoNameIsItsModule) {
  const std::vector<std::uintptr_t> nowhere = {8};
  EXPECT_EQ(code_places(nowhere).at(8).function, "(generated code)");
  const std::vector<std::uintptr_t> known = {reinterpret_cast<std::uintptr_t>(&work_of_host_code_test)};
  const CodePlace place = code_places(known).at(known[0]);
  EXPECT_TRUE(place.own);
  EXPECT_EQ(place.module, "observe_tests");
  if (std::system("addr2line --version > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "the source line is not checked: addr2line is not installed";
  }
  EXPECT_THAT(place.function, HasSubstr("work_of_host_code_test"));
  EXPECT_THAT(place.file, ::testing::EndsWith("host_code_test.cpp"));  // this file is compiled with -g1
  EXPECT_EQ(place.line, kLineOfWork);
}

}  // namespace
}  // namespace stoker::observe::profile
