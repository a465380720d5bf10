// SPDX-License-Identifier: Apache-2.0
// Slow steps and their cause, in made-up stretches of two seconds.
#include "stoker/observe/slow_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stoker::observe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Findings final : public core::EventEmitter {
 public:
  void emit(core::Event event) override { texts.push_back(std::get<core::Finding>(event).text); }
  std::vector<std::string> texts;
};

struct Stretch {
  double step_ms;
  std::int64_t switches;
};

std::vector<std::string> said(const std::vector<Stretch>& stretches, std::int64_t intra_op = 2) {
  Findings findings;
  std::int64_t switches = 5000, step = 700;  // a run that was resumed, in a process that has done other things
  SlowSteps watch(findings, intra_op, [&] { return switches; });
  switches += 3000;  // while it was prepared
  core::RunStarted started;
  started.first_step = step;
  watch.on(started);
  for (const Stretch& each : stretches) {
    core::Fed fed;
    fed.seconds = 2;
    fed.step = step += 10;
    fed.consumer = {{"step", 10 * each.step_ms / 1e3}, {"evaluation", 1}};
    switches += each.switches;
    watch.on(fed);
  }
  return findings.texts;
}

TEST(SlowSteps, ANeighbourIsNamedOnceWithTheRemedy) {
  EXPECT_THAT(said({{10, 4}, {9, 6}, {80, 600}, {90, 620}, {90, 600}, {9, 4}, {90, 600}, {90, 600}}),
              ElementsAre(AllOf(HasSubstr("steps take 10.0 times as long as before (90 ms instead of 9 ms)"),
                                HasSubstr("310 times per second instead of 3"), HasSubstr("intra_op=1 instead of 2"))));
  EXPECT_THAT(said({{10, 4}, {90, 600}, {90, 600}}, 1), ElementsAre(HasSubstr("cores; stop them")));
}

TEST(SlowSteps, OtherCausesAreNot) {
  EXPECT_THAT(said({{10, 4}, {90, 6}, {90, 4}, {90, 4}}), IsEmpty());          // no other program took a core
  EXPECT_THAT(said({{10, 4}, {20, 600}, {20, 600}, {20, 600}}), IsEmpty());    // hardly slower
  EXPECT_THAT(said({{10, 4}, {90, 600}, {10, 4}, {90, 600}}), IsEmpty());      // for a moment
  EXPECT_THAT(said({{10, 500}, {90, 600}, {90, 600}, {90, 600}}), IsEmpty());  // as often as before
}

}  // namespace
}  // namespace stoker::observe
