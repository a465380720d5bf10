// SPDX-License-Identifier: Apache-2.0
// The anatomy of steps from a book whose clock is set by hand, and marks of user code.
#include "stoker/observe/anatomy/step_anatomy.h"

#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "stoker/core/phase.h"
#include "stoker/observe/mark.h"

namespace stoker::observe {
namespace {

using core::Phase;
using core::PhaseScope;

struct Emitted final : core::EventEmitter {
  void emit(core::Event event) override {
    if (const auto* anatomy = std::get_if<core::Anatomy>(&event)) {
      all.push_back(*anatomy);
    } else if (const auto* finding = std::get_if<core::Finding>(&event)) {
      findings.push_back(finding->text);
    } else {
      slow.push_back(std::get<core::SlowStep>(event));
    }
  }
  std::vector<std::string> findings;
  std::vector<core::Anatomy> all;
  std::vector<core::SlowStep> slow;
};

struct FakeSource final : core::BatchSource {
  [[nodiscard]] std::optional<core::Batch> next() override { return std::nullopt; }
  [[nodiscard]] std::optional<core::SourceFigures> figures() const override { return now; }
  core::SourceFigures now;
};

std::map<std::string, double> by_name(const std::vector<core::PhaseTime>& phases) {
  std::map<std::string, double> result;
  for (const core::PhaseTime& each : phases) {
    result[each.name] = each.seconds;
  }
  return result;
}

class StepAnatomyTest : public ::testing::Test {
 protected:
  void SetUp() override { book_.open(); }
  void in(Phase phase, double seconds, double cpu = 0) {
    const PhaseScope scope(phase);
    time_ += seconds;
    cpu_ += cpu;
  }
  void done(std::int64_t step) {
    book_.settle();
    anatomy_.step_done(book_, step);
  }
  // A step of 1/64 s, a fourth of it waiting.
  void usual_step(std::int64_t step) {
    in(Phase::kInput, 1.0 / 256, 0);
    in(Phase::kForward, 3.0 / 256, 1.5 / 256);
    done(step);
  }

  double time_ = 1000, cpu_ = 0;
  core::PhaseBook book_{[this] { return time_; }, [this] { return cpu_; }};
  Emitted emitted_;
  FakeSource source_;
  ThreadUsage usage_;
  StepAnatomy anatomy_{emitted_, source_, nullptr, [this] { return usage_; }};
};

TEST_F(StepAnatomyTest, TellsPeriodsAndTheWhole) {
  for (std::int64_t step = 1; step <= 256; ++step) {
    usual_step(step);
  }
  ASSERT_EQ(emitted_.all.size(), 2U) << "one per 2 s";
  const core::Anatomy first = emitted_.all[0];
  EXPECT_FALSE(first.whole);
  EXPECT_EQ(first.step, 128);
  EXPECT_EQ(first.steps, 128);
  EXPECT_EQ(first.seconds, 2);
  EXPECT_EQ(by_name(first.phases), (std::map<std::string, double>{{"fetch", 0.5}, {"forward", 1.5}}))
      << "what did not happen is missing";
  EXPECT_NEAR(first.p50, 1.0 / 64, 0.016 / 64);
  EXPECT_NEAR(first.p99, 1.0 / 64, 0.016 / 64);
  EXPECT_EQ(first.slowest, 1.0 / 64);
  EXPECT_EQ(emitted_.all[1].step, 256);

  usual_step(257);
  in(Phase::kCheckpoint, 0.25, 0.125);
  anatomy_.finish((book_.settle(), book_), 257);
  ASSERT_EQ(emitted_.all.size(), 4U);
  EXPECT_EQ(by_name(emitted_.all[2].phases)["checkpoint"], 0.25);
  EXPECT_FALSE(emitted_.all[2].whole);
  const core::Anatomy& whole = emitted_.all[3];
  EXPECT_TRUE(whole.whole);
  EXPECT_EQ(whole.steps, 257);
  double sum = 0;
  for (const core::PhaseTime& each : whole.phases) {
    sum += each.seconds;
  }
  EXPECT_NEAR(sum, whole.seconds, 1e-9);
  EXPECT_EQ(whole.seconds, 257.0 / 64 + 0.25);
  for (const core::PhaseTime& each : whole.phases) {
    if (each.name == "forward") {
      EXPECT_NEAR(each.p50, 3.0 / 256, 0.016 * 3 / 256);
      EXPECT_NEAR(each.cpu_seconds, each.seconds / 2, 1e-6);
    } else if (each.name == "checkpoint") {
      EXPECT_EQ(each.cpu_seconds, 0.125);
      EXPECT_EQ(each.p50, 0) << "most steps have none";
    }
  }
}

TEST_F(StepAnatomyTest, OutliersAreToldWithTheirCause) {
  std::int64_t step = 1;
  for (; step <= 20; ++step) {
    usual_step(step);
  }
  EXPECT_TRUE(emitted_.slow.empty());
  source_.now.slowest = "cats/a.jpg";
  source_.now.slowest_seconds = 1.25;
  in(Phase::kInput, 1.25);
  usual_step(step);
  ASSERT_EQ(emitted_.slow.size(), 1U);
  EXPECT_EQ(emitted_.slow[0].step, step);
  EXPECT_EQ(emitted_.slow[0].phase, "fetch");
  EXPECT_EQ(emitted_.slow[0].cause, "slow sample cats/a.jpg: 1.2 s");
  EXPECT_NEAR(emitted_.slow[0].usual_seconds, 1.0 / 64, 0.016 / 64);

  usual_step(++step);
  EXPECT_EQ(emitted_.slow.size(), 1U) << "the book of the slow step is closed";
  in(Phase::kEvaluation, 2);  // after the last step of an epoch
  done(step);
  ASSERT_EQ(emitted_.slow.size(), 2U);
  EXPECT_EQ(emitted_.slow[1].cause, "evaluation");
  EXPECT_EQ(emitted_.slow[1].step, step);

  in(Phase::kEvaluation, 5);
  done(step);
  ASSERT_EQ(emitted_.slow.size(), 3U) << "within the second, but twice as long";
  for (int i = 0; i < 100; ++i) {  // many slow steps
    in(Phase::kBackward, 0.25);
    usual_step(++step);
  }
  EXPECT_LE(emitted_.slow.size(), 3U + 30) << "at most one per phase and second";
  EXPECT_GE(emitted_.slow.size(), 3U + 1);
  anatomy_.finish(book_, step);
  EXPECT_EQ(emitted_.all.back().steps, step) << "what follows the end of an epoch is no step";
}

// Loader threads that decode all the time, and one slow sample that nobody waited for: neither explains a slow step
// long after, whatever the sums say.
TEST_F(StepAnatomyTest, WhatWasLoadedBeforeTheSlowStepExplainsNothing) {
  constexpr int kThreads = 4;
  source_.now.threads = kThreads;
  source_.now.stages = {{.name = "read", .seconds = 0}, {.name = "JPEG decode", .seconds = 0}};
  double& decoding = source_.now.stages[1].seconds;
  std::int64_t step = 1;
  for (; step <= 3600 * 4; ++step) {
    decoding += kThreads * 0.5;  // far more than an hour of it
    if (step == 1000) {
      source_.now.slowest = "cats/a.jpg";
      source_.now.slowest_seconds = 30;
    }
    usual_step(step);
  }
  decoding += kThreads * 0.25;
  usage_.involuntary += 5;
  in(Phase::kInput, 1);
  usual_step(step);
  ASSERT_EQ(emitted_.slow.size(), 1U);
  EXPECT_EQ(emitted_.slow[0].cause, "the kernel gave the core to others, 5 times");

  for (int i = 0; i < 128; ++i) {
    decoding += kThreads * 0.5;
    usual_step(++step);
  }
  decoding += 1;  // of four threads
  usage_.voluntary += 3;
  in(Phase::kInput, 1);
  usual_step(++step);
  ASSERT_EQ(emitted_.slow.size(), 2U);
  EXPECT_EQ(emitted_.slow[1].cause, "asleep for 1 s of it");

  for (int i = 0; i < 128; ++i) {
    usual_step(++step);
  }
  decoding += kThreads * 0.875;
  usage_.voluntary += 3;
  in(Phase::kInput, 1);
  usual_step(++step);
  ASSERT_EQ(emitted_.slow.size(), 3U);
  EXPECT_EQ(emitted_.slow[2].cause, "loading: JPEG decode");
}

// Short steps share a reading of the source: what may have been before the step is not taken for its cause.
TEST_F(StepAnatomyTest, ShortStepsAreExplainedByWhatMustHaveBeenInThem) {
  source_.now.threads = 1;
  source_.now.stages = {{.name = "read", .seconds = 0}};
  std::int64_t step = 1;
  const auto short_step = [&](double fetch) {
    in(Phase::kInput, fetch);
    done(step++);
  };
  while (time_ < 1000 + 22.0 / 1024) {
    short_step(1.0 / 1024);
  }
  ASSERT_TRUE(emitted_.slow.empty());
  for (int i = 0; i < 8; ++i) {  // the source is read every 11 of these steps
    source_.now.stages[0].seconds += 1.0 / 1024;
    short_step(1.0 / 1024);
  }
  short_step(8.0 / 1024);
  ASSERT_EQ(emitted_.slow.size(), 1U);
  EXPECT_EQ(emitted_.slow[0].cause, "") << "the reading may have been before the step";
}

TEST_F(StepAnatomyTest, ALastingChangeBecomesTheUsual) {
  std::int64_t step = 1;
  for (; step <= 10'000; ++step) {
    usual_step(step);
  }
  for (int i = 0; i < 200; ++i, ++step) {
    in(Phase::kBackward, 1.5);
    usual_step(step);
  }
  EXPECT_GE(emitted_.slow.size(), 1U);
  EXPECT_LE(emitted_.slow.size(), UsualStep::kSteps + UsualStep::kEach);
  const std::size_t told = emitted_.slow.size();
  in(Phase::kForward, 10);
  usual_step(step);
  ASSERT_EQ(emitted_.slow.size(), told + 1);
  EXPECT_EQ(emitted_.slow.back().phase, "forward");
  EXPECT_EQ(emitted_.slow.back().usual_seconds, 1.5 + 1.0 / 64);
}

TEST_F(StepAnatomyTest, TimeThatBelongsToNoStepIsInTheSumsOnly) {
  std::int64_t step = 1;
  for (; step <= 20; ++step) {
    usual_step(step);
  }
  const auto pause = [&](double seconds, const char* cause) {
    in(Phase::kInput, 1.0 / 256);
    in(Phase::kForward, 3.0 / 256);
    in(Phase::kLogging, seconds);
    usage_.involuntary += 50;
    book_.settle();
    anatomy_.step_done(book_, step++, seconds, cause);
  };
  pause(3, "");
  EXPECT_TRUE(emitted_.slow.empty()) << "what the kernel counted is of the pause, too: " << emitted_.slow[0].cause;
  ASSERT_EQ(emitted_.all.size(), 1U);
  EXPECT_EQ(emitted_.all[0].slowest, 1.0 / 64);
  EXPECT_EQ(by_name(emitted_.all[0].phases)["logging"], 3) << "the phases sum to wall time";
  pause(4, "a profile begins");
  ASSERT_EQ(emitted_.slow.size(), 1U);
  EXPECT_EQ(emitted_.slow[0].cause, "a profile begins");
  EXPECT_EQ(emitted_.slow[0].phase, "logging");
  EXPECT_EQ(emitted_.slow[0].seconds, 4 + 1.0 / 64);
  pause(0, "a profile ends");
  EXPECT_EQ(emitted_.slow.size(), 1U) << "it is not slow";
  anatomy_.finish(book_, step);
  const core::Anatomy& whole = emitted_.all.back();
  EXPECT_EQ(whole.slowest, 1.0 / 64);
  EXPECT_NEAR(whole.p99, 1.0 / 64, 0.016 / 64);
  EXPECT_EQ(whole.seconds, 23.0 / 64 + 7);
  for (const core::PhaseTime& each : whole.phases) {
    if (each.name == "logging") {
      EXPECT_EQ(each.p99, 0);
    }
  }
}

TEST_F(StepAnatomyTest, WhatTheKernelCountsIsOfTheStepAlone) {
  std::int64_t step = 1;
  for (; step <= 20; ++step) {
    usage_.involuntary += 100;
    usual_step(step);
  }
  usage_.involuntary += 7;
  in(Phase::kBackward, 0.5);
  usual_step(step);
  ASSERT_EQ(emitted_.slow.size(), 1U);
  EXPECT_EQ(emitted_.slow[0].cause, "the kernel gave the core to others, 7 times");
}

TEST_F(StepAnatomyTest, MarksAreParts) {
  for (std::int64_t step = 1; step <= 3; ++step) {
    const PhaseScope forward(Phase::kForward);
    const auto outer = mark("encoder");
    time_ += 0.5;
    {
      const auto inner = mark("attention");
      time_ += 0.25;
    }
    time_ += 0.5;
  }
  done(3);
  ASSERT_EQ(emitted_.all.size(), 1U);
  EXPECT_EQ(by_name(emitted_.all[0].phases), (std::map<std::string, double>{{"forward", 3.75}}));
  EXPECT_EQ(by_name(emitted_.all[0].marks), (std::map<std::string, double>{{"encoder", 3.75}, {"attention", 0.75}}));
}

// The times of the device with the CPU's events, whose clock is the wall's: so the figures of both agree.
TEST(StepAnatomy, TellsTheTimesOfTheDevice) {
  Emitted emitted;
  FakeSource source;
  source.now.copy_seconds = 7;  // before the loop
  device::PhaseEvents events(c10::Device(c10::kCPU));
  core::PhaseBook book;
  StepAnatomy anatomy(emitted, source, &events);
  book.listen(&events);
  book.open();
  for (std::int64_t step = 1; step <= 64; ++step) {
    {
      const PhaseScope backward(Phase::kBackward);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    book.settle();
    anatomy.step_done(book, step);
  }
  source.now.copy_seconds = 7.5;
  anatomy.finish(book, 64);
  const core::Anatomy& whole = emitted.all.back();
  std::map<std::string, double> device;
  for (const core::PhaseTime& each : whole.phases) {
    device[each.name] = each.device_seconds;
  }
  EXPECT_GE(device["backward"], 64e-3) << "one of eight steps is timed, and stands for the others";
  EXPECT_EQ(device["copy"], 0.5);
}

TEST(StepAnatomy, SaysOnceThatStepsOfTooManyPassesAreNotTimed) {
  Emitted emitted;
  FakeSource source;
  device::PhaseEvents events(c10::Device(c10::kCPU));
  core::PhaseBook book;
  StepAnatomy anatomy(emitted, source, &events);
  book.listen(&events);
  book.open();
  const auto steps = [&](std::size_t passes) {
    for (std::int64_t step = 0; step < 32; ++step) {
      for (std::size_t pass = 0; pass < passes; ++pass) {
        const PhaseScope forward(Phase::kForward);
      }
      book.settle();
      anatomy.step_done(book, step);
    }
  };
  steps(device::PhaseEvents::kMostMarks / 4);
  EXPECT_TRUE(emitted.findings.empty());
  steps(device::PhaseEvents::kMostMarks);
  EXPECT_THAT(emitted.findings, ::testing::ElementsAre(::testing::HasSubstr("1,024 changes of phase")));
}

// NVTX, Kineto and others see it as they see operators.
TEST(Mark, IsARangeForProfilers) {
  static std::vector<std::string> seen;
  seen.clear();
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback(
          [](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
            seen.emplace_back(call.name());
            return nullptr;
          },
          [](const at::RecordFunction& call, at::ObserverContext*) { seen.push_back(std::string("/") + call.name()); })
          .scopes({at::RecordScope::USER_SCOPE}));
  {
    const auto outer = mark("outer");
    const auto inner = mark(std::string("inn") + "er");
  }
  at::removeCallback(handle);
  const auto unseen = mark("later");
  EXPECT_THAT(seen, ::testing::ElementsAre("outer", "inner", "/inner", "/outer"));
}

TEST(Mark, WithoutABookNothingHappens) { const auto stage = mark("outside of a run"); }

}  // namespace
}  // namespace stoker::observe
