// SPDX-License-Identifier: Apache-2.0
// How a run goes on when memory runs out: what is tried again, what is told, when passes grow again, and when it ends.
#include "stoker/train/recovery.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <string>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/device/host_allocator.h"
#include "stoker/train/evaluate.h"
#include "support/toy_trainable.h"

namespace stoker::train {
namespace {

using stoker::testing::toy_batch;
using stoker::testing::ToyTrainable;
using ::testing::HasSubstr;

class Told final : public core::EventEmitter {
 public:
  void emit(core::Event event) override {
    if (const auto* finding = std::get_if<core::Finding>(&event)) {
      findings.push_back(finding->text);
    } else {
      faults.push_back(std::get<core::FaultSurvived>(event));
    }
  }
  std::vector<core::FaultSurvived> faults;
  std::vector<std::string> findings;
};

// Runs out of memory as often as asked before it gives a batch.
class Failing final : public core::BatchSource {
 public:
  explicit Failing(int failures) : failures_(failures) {}
  std::optional<core::Batch> next() override {
    if (failures_-- > 0) {
      throw std::bad_alloc();
    }
    return toy_batch(8, at::kFloat);
  }

 private:
  int failures_;
};

void fail_once(Recovery& recovery, std::int64_t samples, bool after_passes = false) {
  try {
    throw std::bad_alloc();
  } catch (const std::exception& error) {
    recovery.ran_out(error, samples, after_passes);
  }
}

TEST(Recovery, TellsWhatItSurvived) {
  Told told;
  Recovery recovery({.microbatch = {.asked = 64}, .events = &told});
  recovery.begin_step(18);
  fail_once(recovery, 64);
  fail_once(recovery, 64, /*after_passes=*/true);
  ASSERT_EQ(told.faults.size(), 2U);
  EXPECT_EQ(told.faults[0].step, 18);
  EXPECT_EQ(told.faults[0].kind, "out_of_memory");
  EXPECT_THAT(told.faults[0].text, HasSubstr("64 samples per forward pass; the same batch runs again with 32"));
  EXPECT_THAT(told.faults[1].text, HasSubstr("the next one has 16 samples per pass"));
  EXPECT_EQ(memory::schedule_text(recovery.schedule()), "18:32,19:16");
}

// Once per run, with the first pass that is smaller than its batch: whether it starts so or shrinks.
TEST(Recovery, SaysOnceWhatSmallPassesDoToBatchNorm) {
  for (const std::int64_t asked : {0, 4}) {
    Told told;
    Recovery recovery({.microbatch = {.asked = asked, .smallest = 2}, .events = &told, .coupled = "larger ones help"});
    Failing source(0);
    recovery.begin_step(1);
    (void)recovery.next(source);
    EXPECT_EQ(told.findings.size(), asked == 0 ? 0U : 1U) << "a whole batch in one pass needs no word";
    for (int failure = 0; failure < (asked == 0 ? 2 : 1); ++failure) {
      fail_once(recovery, 8);
      (void)recovery.next(source);
    }
    ASSERT_EQ(told.findings.size(), 1U) << "not once more when passes shrink again";
    EXPECT_THAT(told.findings[0], HasSubstr("the batch of 8 is split into passes of 4 samples, and batch norm takes"));
    EXPECT_THAT(told.findings[0], HasSubstr("larger ones help"));
  }
}

TEST(Recovery, SaysNothingOfSmallPassesIfSamplesAreIndependent) {
  Told told;
  Recovery recovery({.microbatch = {.asked = 2}, .events = &told});
  Failing source(0);
  recovery.begin_step(1);
  (void)recovery.next(source);
  fail_once(recovery, 8);
  EXPECT_TRUE(told.findings.empty());
}

// The part of a rank is a pass of its own.
TEST(Recovery, ThePartOfARankIsSmallerThanTheBatch) {
  class Part final : public core::BatchSource {
    std::optional<core::Batch> next() override { return toy_batch(8, at::kFloat).slice(0, 4); }
  } source;
  Told told;
  Recovery recovery({.events = &told, .coupled = "larger ones help"});
  recovery.begin_step(1);
  (void)recovery.next(source);
  ASSERT_EQ(told.findings.size(), 1U);
  EXPECT_THAT(told.findings[0], HasSubstr("the batch of 8 is split into passes of 4 samples"));
}

TEST(Recovery, AsksASourceAgainAndShrinksIfThatDoesNotHelp) {
  Told told;
  Recovery recovery({.microbatch = {.asked = 8}, .events = &told});
  recovery.begin_step(1);
  Failing once(1), good(0), twice(2);
  EXPECT_EQ(recovery.next(good)->size(), 8);
  EXPECT_EQ(recovery.next(once)->size(), 8);
  EXPECT_TRUE(recovery.schedule().empty());
  EXPECT_EQ(recovery.next(twice)->size(), 8);
  EXPECT_EQ(memory::schedule_text(recovery.schedule()), "1:4");
  EXPECT_EQ(told.faults.size(), 3U);
  Failing always(1000);
  EXPECT_THROW((void)recovery.next(always), OutOfMemory);
}

TEST(Recovery, OtherErrorsOfASourceEndTheRun) {
  class Broken final : public core::BatchSource {
    std::optional<core::Batch> next() override { fail<DataError>("test", "damaged"); }
  } source;
  Recovery recovery({});
  EXPECT_THROW((void)recovery.next(source), DataError);
}

TEST(Recovery, EndsWithAdviceAtTheSmallestPass) {
  Recovery recovery({.microbatch = {.asked = 4, .smallest = 2}, .advice = [] { return "set it lower"; }});
  recovery.begin_step(3);
  fail_once(recovery, 4);
  try {
    fail_once(recovery, 4);
    FAIL() << "batch norm needs two samples";
  } catch (const OutOfMemory& error) {
    EXPECT_THAT(error.what(), HasSubstr("step 3 does not fit even in the smallest forward passes"));
    EXPECT_THAT(error.what(), HasSubstr("set it lower"));
  }
}

// Passes of n samples need n MiB. The cap leaves room for some of them.
class Growth : public ::testing::Test {
 protected:
  static constexpr std::int64_t kMiB = 1 << 20;
  void SetUp() override { device::install_host_allocator(); }
  void TearDown() override { device::set_host_cap(-1); }
  static void leave(std::int64_t mib) { device::set_host_cap(device::host_allocated() + mib * kMiB); }

  // Steps until the schedule has changed so often; returns the first step with it, -1 after `most` steps.
  std::int64_t steps_until(std::size_t changes, std::int64_t most) {
    for (std::int64_t i = 0; i < most; ++i) {
      recovery.begin_step(++step);
      memory::until_it_fits(recovery, 16, [&] {
        for (std::int64_t pass = 0; pass < recovery.passes(16); ++pass) {
          (void)at::empty({16 / recovery.passes(16) * kMiB}, at::kByte);
        }
      });
      recovery.step_done();
      if (recovery.schedule().size() == changes) {
        return step;
      }
    }
    return -1;
  }

  Recovery recovery{{.microbatch = {.asked = 16}}};
  std::int64_t step = 0;
};

TEST_F(Growth, FollowsTheMemoryThatIsFree) {
  leave(20);
  EXPECT_EQ(steps_until(1, 30), -1);
  leave(10);
  EXPECT_EQ(steps_until(1, 1), 31) << "16 MiB do not fit any more";
  EXPECT_EQ(steps_until(2, 350), -1) << "the figures say that 16 do not fit: no try, no failure";
  leave(20);
  EXPECT_GT(steps_until(2, 101), 0);
  EXPECT_EQ(recovery.schedule().back().samples, 16);
  EXPECT_EQ(steps_until(3, 300), -1);
}

// What a spike costs: half the microbatch for a hundred steps.
TEST_F(Growth, AfterASpikeItTakesAHundredSteps) {
  leave(10);
  ASSERT_EQ(steps_until(1, 1), 1);
  leave(40);
  EXPECT_EQ(steps_until(2, 200), 101);
}

// An evaluation shrinks, too, and its totals are those of whole batches.
TEST(Recovery, AnEvaluationShrinks) {
  ToyTrainable model(at::kDouble);
  class OneBatch final : public core::BatchSource {
    std::optional<core::Batch> next() override {
      given_ = !given_;
      return given_ ? std::optional(toy_batch(13)) : std::nullopt;
    }
    bool given_ = false;
  } source;
  const auto whole = evaluate(model, source, at::kFloat);
  Told told;
  Recovery recovery({.work = "the evaluation", .events = &told});
  std::vector<std::int64_t> sizes;
  int failures = 3;
  const auto visit = [&](const core::TensorList&, const core::Batch& batch) {
    if (failures > 0 && (sizes.empty() || batch.first_row() > 0)) {
      --failures;
      throw std::bad_alloc();
    }
    sizes.push_back(batch.size());
  };
  const auto split = evaluate(model, source, at::kFloat, {.visit = visit, .split = &recovery});
  EXPECT_EQ(told.faults.size(), 3U);
  std::int64_t samples = 0;
  for (const std::int64_t size : sizes) {
    samples += size;
  }
  EXPECT_EQ(samples, 13);
  EXPECT_GT(sizes.size(), 2U);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_TRUE(split[i].tensor.equal(whole[i].tensor)) << whole[i].name;
  }
}

}  // namespace
}  // namespace stoker::train
