// SPDX-License-Identifier: Apache-2.0
// The book of a thread's phases: every moment is booked once, to the innermost scope. The clocks are set by hand.
#include "stoker/core/phase_book.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>

#include "stoker/core/phase.h"

namespace stoker::core {
namespace {

class PhaseBookTest : public ::testing::Test {
 protected:
  void pass(double seconds, double cpu = 0) {
    time_ += seconds;
    cpu_ += cpu;
  }
  [[nodiscard]] double booked(Phase phase) const { return book_.seconds(phase); }

  double time_ = 100, cpu_ = 7;
  PhaseBook book_{[this] { return time_; }, [this] { return cpu_; }};
};

TEST_F(PhaseBookTest, BooksEachMomentToTheInnermostScope) {
  {
    const PhaseScope before(Phase::kForward);
    pass(50);
  }
  book_.open();
  pass(1);
  {
    const PhaseScope forward(Phase::kForward);
    pass(2);
    {
      const PhaseScope loss(Phase::kLoss);
      EXPECT_EQ(memory_phase(t_phase), Phase::kForward);
      pass(4);
    }
    pass(8);
  }
  EXPECT_EQ(t_phase, Phase::kOther);
  pass(16);
  EXPECT_EQ(booked(Phase::kOther), 1) << "the present phase is booked when it ends, or by settle()";
  book_.settle();
  EXPECT_EQ(booked(Phase::kOther), 17);
  EXPECT_EQ(booked(Phase::kForward), 10);
  EXPECT_EQ(booked(Phase::kLoss), 4);
  EXPECT_EQ(book_.total(), 31);
}

TEST_F(PhaseBookTest, WhatAnEvaluationDoesStaysItsOwn) {
  book_.open();
  {
    const PhaseScope evaluation(Phase::kEvaluation);
    pass(1);
    {
      const PhaseScope input(Phase::kInput);
      EXPECT_EQ(t_phase, Phase::kInput) << "memory is booked to the inner phase";
      pass(2);
      const PhaseScope copy(Phase::kCopy);
      pass(4);
    }
    pass(8);
  }
  const PhaseScope input(Phase::kInput);
  pass(16);
  book_.settle();
  EXPECT_EQ(booked(Phase::kEvaluation), 15);
  EXPECT_EQ(booked(Phase::kInput), 16);
  EXPECT_EQ(booked(Phase::kCopy), 0);
}

TEST_F(PhaseBookTest, ReadsCpuTimeInProbedStretchesAndRarePhases) {
  book_.open();
  const auto step = [&] {
    const PhaseScope forward(Phase::kForward);
    pass(4, 1);
  };
  step();
  EXPECT_EQ(book_.spent()[index_of(Phase::kForward)].cpu_seconds(), -1) << "missing, not 0";
  book_.probe(true);
  {
    const PhaseScope input(Phase::kInput);
    pass(1);
  }
  step();
  book_.probe(false);
  step();  // the reading at its begin ends the stretch
  {
    const PhaseScope checkpoint(Phase::kCheckpoint);
    pass(10, 2.5);
  }
  const PhaseSpent& forward = book_.spent()[index_of(Phase::kForward)];
  EXPECT_EQ(forward.seconds, 12);
  EXPECT_EQ(forward.visits, 3);
  EXPECT_EQ(forward.probed_visits, 1);
  EXPECT_EQ(forward.cpu_seconds(), 3);
  const PhaseSpent& checkpoint = book_.spent()[index_of(Phase::kCheckpoint)];
  EXPECT_EQ(checkpoint.seconds, 10);
  EXPECT_EQ(checkpoint.cpu_seconds(), 2.5);
}

// Whatever a program does, the phases sum to the wall time, and to what a plain list of moments says.
TEST_F(PhaseBookTest, PhasesSumToWallTime) {
  std::mt19937 random(1);
  std::map<Phase, double> expected;
  book_.open();
  double wall = 0;
  const auto some_time = [&](Phase phase) {
    const double seconds = static_cast<double>(random() % 1024) / 1024;
    pass(seconds);
    wall += seconds;
    expected[phase] += seconds;
  };
  const std::function<void(Phase, int)> act = [&](Phase inside, int depth) {
    for (unsigned i = random() % 4; i > 0; --i) {
      const auto phase = static_cast<Phase>(random() % kPhases);
      const bool whole = inside == Phase::kEvaluation || inside == Phase::kCheckpoint;
      const PhaseScope scope(phase);
      some_time(whole ? inside : phase);
      if (depth < 4) {
        act(whole ? inside : phase, depth + 1);
      }
      some_time(whole ? inside : phase);
      book_.probe(random() % 2 == 0);
    }
    some_time(inside);
  };
  for (int i = 0; i < 200; ++i) {
    act(Phase::kOther, 0);
  }
  book_.settle();
  double sum = 0;
  for (const Phase phase : kPhaseOrder) {
    EXPECT_NEAR(booked(phase), expected[phase], 1e-9) << time_name(phase);
    sum += booked(phase);
  }
  EXPECT_NEAR(sum, wall, 1e-9);
  EXPECT_NEAR(book_.total(), wall, 1e-9);
  EXPECT_GT(wall, 100);
}

TEST_F(PhaseBookTest, BelongsToOneThreadAndPutsBackTheBookBefore) {
  book_.open();
  {
    PhaseBook inner;
    inner.open();
    EXPECT_EQ(t_book, &inner);
  }
  EXPECT_EQ(t_book, &book_);
  std::thread([&] {
    EXPECT_EQ(t_book, nullptr);
    const PhaseScope forward(Phase::kForward);
    pass(3);
  }).join();
  book_.close();
  EXPECT_EQ(t_book, nullptr);
  EXPECT_EQ(booked(Phase::kForward), 0);
  EXPECT_EQ(booked(Phase::kOther), 3);
  pass(5);
  EXPECT_EQ(book_.total(), 3) << "later time is not counted";
}

TEST_F(PhaseBookTest, MarksHaveNamesUpToALimit) {
  book_.open();
  for (std::size_t i = 0; i < PhaseBook::kMostMarks + 5; ++i) {
    book_.add_mark(book_.mark("mark " + std::to_string(i)), 1);
  }
  book_.add_mark(book_.mark("mark 3"), 2);
  ASSERT_EQ(book_.marks().size(), PhaseBook::kMostMarks);
  EXPECT_EQ(book_.marks()[3].name, "mark 3");
  EXPECT_EQ(book_.marks()[3].seconds, 3);
  EXPECT_EQ(book_.marks()[3].times, 2);
}

TEST(Phases, HaveNamesForTimeAndMemory) {
  EXPECT_EQ(phase_name(Phase::kLoss), "forward");
  EXPECT_EQ(time_name(Phase::kLoss), "loss");
  EXPECT_EQ(phase_name(Phase::kClip), "update");
  EXPECT_EQ(phase_name(Phase::kDeviceWait), "other");
  std::map<std::string_view, int> names;
  for (const Phase phase : kPhaseOrder) {
    ++names[time_name(phase)];
    EXPECT_LT(index_of(memory_phase(phase)), kMemoryPhases);
  }
  EXPECT_EQ(names.size(), kPhases) << "each phase is in the order once, under its own name";
}

}  // namespace
}  // namespace stoker::core
