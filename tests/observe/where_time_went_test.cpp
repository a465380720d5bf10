// SPDX-License-Identifier: Apache-2.0
// The table at the end of a training.
#include "stoker/observe/anatomy/where_time_went.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::observe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

core::Anatomy period(double fetch, double forward, std::int64_t steps = 100) {
  core::Anatomy all;
  all.steps = steps;
  all.seconds = fetch + forward;
  all.phases = {{.name = "fetch", .seconds = fetch}, {.name = "forward", .seconds = forward}};
  return all;
}

TEST(WhereTimeWent, IsATable) {
  WhereTimeWent went;
  for (const double fetch : {0.0, 1.0, 2.0}) {
    went.add(period(fetch, 1));
  }
  core::Anatomy whole = period(3, 3, 300);
  whole.p50 = 0.02;
  whole.p99 = 0.0312;
  whole.slowest = 1.5;
  whole.phases[0].p50 = 0.0101;
  whole.phases[0].p99 = 0.02;
  whole.phases[1].cpu_seconds = 2.7;
  whole.phases.push_back({.name = "EMA", .seconds = 1e-4});
  whole.marks = {{.name = "bad\x1bname", .seconds = 1.5}};
  EXPECT_EQ(went.text(whole, true),
            "where the time went: 300 steps in 6 s; half of the steps took at most 20.0 ms, 99 % at most 31.2 ms, the "
            "slowest 1,500 ms\n"
            "                     share  ms, half  ms, 99 % computing  over the run\n"
            "  fetch               50 %      10.1      20.0         -  ▁▅█\n"
            "  forward             50 %         -         -      90 %  ███\n"
            "  bad\\x1bname         25 %  (named by mark)\n"
            "  the rest           0.0 %");
  EXPECT_THAT(went.text(whole, false), HasSubstr("  _=#\n"));
  EXPECT_EQ(went.text({}, true), "") << "a run without a step";
}

TEST(WhereTimeWent, ALongRunHasAShortLine) {
  WhereTimeWent went;
  for (int i = 0; i < 1000; ++i) {
    went.add(period(i < 500 ? 1 : 3, 1));
  }
  const std::string text = went.text(period(2000, 1000, 100'000), false);
  EXPECT_THAT(text, HasSubstr("  :::::::-########\n"));
  EXPECT_THAT(text, Not(HasSubstr("#########################"))) << "at most 24 characters";
}

}  // namespace
}  // namespace stoker::observe
