// SPDX-License-Identifier: Apache-2.0
// The order of passes in a pipeline, and a simulation of stages that wait for each other's messages.
#include "stoker/parallel/pipeline_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <tuple>

#include "stoker/parallel/pipeline_cut.h"

namespace stoker::parallel {
namespace {

constexpr int kMost = 8;

std::vector<std::vector<PipelineTurn>> turns_of_all(int stages, int microbatches) {
  std::vector<std::vector<PipelineTurn>> turns;
  for (int stage = 0; stage < stages; ++stage) {
    turns.push_back(one_forward_one_backward(stage, stages, microbatches));
  }
  return turns;
}

// Stages that do their turns. A turn that needs a message waits for it. rendezvous: a stage also waits until each
// message that it sends is taken.
class Simulation {
 public:
  Simulation(int stages, int microbatches, bool rendezvous, double latency = 0)
      : turns_(turns_of_all(stages, microbatches)),
        states_(turns_.size()),
        rendezvous_(rendezvous),
        latency_(latency) {}

  // When the last turn ends, with passes of these lengths; empty: the stages wait for each other for ever.
  std::optional<double> run(double forward, double backward) {
    while (std::ranges::any_of(std::views::iota(std::size_t{0}, turns_.size()),
                               [&](std::size_t stage) { return advance(stage, forward, backward); })) {
    }
    double end = 0;
    for (std::size_t stage = 0; stage < turns_.size(); ++stage) {
      if (states_[stage].next < turns_[stage].size() || states_[stage].sending) {
        return std::nullopt;
      }
      end = std::max(end, states_[stage].clock);
    }
    return end;
  }

 private:
  struct State {
    std::size_t next = 0;  // turn
    double clock = 0;
    bool sending = false;  // waits for its receiver
  };

  // Whether the stage could do a turn.
  bool advance(std::size_t stage, double forward, double backward) {
    State& state = states_[stage];
    if (state.sending || state.next == turns_[stage].size()) {
      return false;
    }
    const PipelineTurn turn = turns_[stage][state.next];
    if (turn.backward ? stage + 1 < turns_.size() : stage > 0) {
      const auto message = mail_.find({stage, turn.backward, turn.microbatch});
      if (message == mail_.end()) {
        return false;
      }
      state.clock = std::max(state.clock, message->second);
      states_[turn.backward ? stage + 1 : stage - 1].sending = false;
    }
    state.clock += turn.backward ? backward : forward;
    ++state.next;
    if (turn.backward ? stage > 0 : stage + 1 < turns_.size()) {
      mail_[{turn.backward ? stage - 1 : stage + 1, turn.backward, turn.microbatch}] = state.clock + latency_;
      state.sending = rendezvous_;
    }
    return true;
  }

  std::vector<std::vector<PipelineTurn>> turns_;
  std::vector<State> states_;
  bool rendezvous_;
  double latency_;                                             // of a message
  std::map<std::tuple<std::size_t, bool, int>, double> mail_;  // to a stage, for a turn: when
};

TEST(PipelineSchedule, ComputesEachMicrobatchOnceInOrderWithFewInFlight) {
  for (int stages = 1; stages <= kMost; ++stages) {
    for (int microbatches = 0; microbatches <= kMost; ++microbatches) {
      for (int stage = 0; stage < stages; ++stage) {
        int forward = 0, backward = 0, most = 0;
        for (const PipelineTurn& turn : one_forward_one_backward(stage, stages, microbatches)) {
          EXPECT_EQ(turn.microbatch, turn.backward ? backward++ : forward++);
          EXPECT_LE(backward, forward);
          most = std::max(most, forward - backward);
        }
        EXPECT_EQ(forward, microbatches);
        EXPECT_EQ(backward, microbatches);
        EXPECT_EQ(most, most_in_flight(stage, stages, microbatches));
      }
    }
  }
}

TEST(PipelineSchedule, IsTheKnownOne) {
  std::string text;
  for (const PipelineTurn& turn : one_forward_one_backward(1, 4, 6)) {
    text += (turn.backward ? " b" : " f") + std::to_string(turn.microbatch);
  }
  EXPECT_EQ(text, " f0 f1 f2 f3 f4 b0 f5 b1 b2 b3 b4 b5");
}

TEST(PipelineSchedule, NeverStopsAndWaitsAsLittleAsCanBe) {
  for (int stages = 1; stages <= kMost; ++stages) {
    for (int microbatches = 1; microbatches <= kMost; ++microbatches) {
      constexpr double kForward = 1, kBackward = 2;
      const auto end = Simulation(stages, microbatches, false).run(kForward, kBackward);
      ASSERT_TRUE(end) << stages << " stages, " << microbatches << " microbatches";
      const double work = microbatches * (kForward + kBackward);
      EXPECT_NEAR((*end - work) / *end, ideal_bubble(stages, microbatches), 1e-12);
    }
  }
}

// Only the way of the first microbatch to the last stage, and that of the last one back, take longer.
TEST(PipelineSchedule, HidesMessagesBehindPasses) {
  constexpr double kForward = 1, kBackward = 2;
  for (int stages = 2; stages <= kMost; ++stages) {
    const double latency = 0.49 * (kForward + kBackward);
    for (int microbatches = 1; microbatches <= 3 * kMost; ++microbatches) {
      const auto end = Simulation(stages, microbatches, false, latency).run(kForward, kBackward);
      ASSERT_TRUE(end);
      const double passes = (microbatches + stages - 1) * (kForward + kBackward);
      EXPECT_NEAR(*end, passes + 2 * (stages - 1) * latency, 1e-9) << stages << " stages, " << microbatches;
    }
  }
}

// Why messages are sent in the background.
TEST(PipelineSchedule, StopsIfAStageWaitsUntilItsMessagesArrive) {
  EXPECT_FALSE(Simulation(2, 2, true).run(1, 2));
  EXPECT_TRUE(Simulation(2, 1, true).run(1, 2));
}

}  // namespace
}  // namespace stoker::parallel
