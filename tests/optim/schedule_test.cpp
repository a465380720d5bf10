// SPDX-License-Identifier: Apache-2.0
// Learning rates against torch.optim.lr_scheduler's, step by step.
#include "stoker/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "golden/schedules.h"
#include "stoker/base/error.h"

namespace stoker::optim {
namespace {

void expect_equal(const ScheduleOptions& options, const std::vector<double>& golden, const char* name) {
  check(options);
  for (std::size_t step = 0; step < golden.size(); ++step) {
    EXPECT_NEAR(lr_at(options, static_cast<std::int64_t>(step)), golden[step], 1e-12) << name << " at step " << step;
  }
}

TEST(Schedule, EqualsPyTorch) {
  using Kind = ScheduleKind;
  expect_equal({.kind = Kind::kCosine, .lr = 0.4, .total_steps = 20, .min_factor = 0.1}, golden::schedule_cosine,
               "cosine");
  expect_equal({.kind = Kind::kLinear, .lr = 0.4, .total_steps = 20, .min_factor = 0.1}, golden::schedule_linear,
               "linear");
  expect_equal({.kind = Kind::kStep, .lr = 0.4, .total_steps = 20, .step_size = 6, .gamma = 0.3}, golden::schedule_step,
               "step");
  expect_equal({.kind = Kind::kOneCycle, .lr = 0.4, .total_steps = 20}, golden::schedule_one_cycle, "one_cycle");
  expect_equal({.kind = Kind::kOneCycle, .lr = 0.4, .warmup_steps = 6, .total_steps = 20}, golden::schedule_one_cycle,
               "one_cycle with its rise in steps");
  expect_equal(
      {.kind = Kind::kOneCycle, .lr = 0.4, .total_steps = 37, .rise_fraction = 0.23, .start_div = 10, .final_div = 100},
      golden::schedule_one_cycle_wide, "one_cycle_wide");
  expect_equal({.kind = Kind::kCosine, .lr = 0.4, .warmup_steps = 5, .total_steps = 25}, golden::schedule_cosine_warm,
               "cosine_warm");
  expect_equal({.kind = Kind::kConstant, .lr = 0.4, .warmup_steps = 5, .total_steps = 12},
               golden::schedule_constant_warm, "constant_warm");
}

TEST(Schedule, IsFiniteAndWithinThePeakEverywhere) {
  for (const std::string& name : known_schedules()) {
    for (const std::int64_t total : {1, 2, 3, 100}) {
      for (const std::int64_t warmup : {std::int64_t{0}, std::int64_t{1}, total / 2, total}) {
        const ScheduleOptions options{
            .kind = schedule_kind(name), .lr = 0.4, .warmup_steps = warmup, .total_steps = total};
        for (std::int64_t step = 0; step < total + 5; ++step) {
          const double lr = lr_at(options, step);
          EXPECT_TRUE(std::isfinite(lr) && lr >= 0 && lr <= 0.4 * (1 + 1e-12)) << name << " " << total << " " << step;
        }
        EXPECT_EQ(lr_at(options, total + 100), lr_at(options, total - 1));
      }
    }
  }
}

TEST(Schedule, RefusesBadValuesInWords) {
  EXPECT_THROW(check({.lr = std::nan("")}), ConfigError);
  EXPECT_THROW(check({.lr = -1}), ConfigError);
  EXPECT_THROW(check({.total_steps = 0}), ConfigError);
  EXPECT_THROW(check({.warmup_steps = 2, .total_steps = 1}), ConfigError);
  EXPECT_THROW(check({.step_size = 0}), ConfigError);
  try {
    (void)schedule_kind("cosin");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean \"cosine\""), std::string::npos);
  }
}

}  // namespace
}  // namespace stoker::optim
