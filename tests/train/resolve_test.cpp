// SPDX-License-Identifier: Apache-2.0
// From the requested options to the plan: precedence and contradictions.
#include "stoker/train/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/train/plan_options.h"
#include "support/made_up_facts.h"

namespace stoker::train {
namespace {

using ::testing::AllOf;
using testing::asked;
using testing::facts_of;
using ::testing::HasSubstr;
using ::testing::Not;

std::string refusal(const Options& options, const Facts& facts) {
  try {
    (void)resolve(options, facts);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Resolve, TheCommandLineBeatsTheRecipeBeatsTheDefaults) {
  const Plan plan = resolve(asked({"lr=0.3"}), facts_of(1000));
  EXPECT_EQ(plan.lr, 0.3);
  EXPECT_EQ(plan.notes.at("lr").origin, core::Origin::kCommandLine);
  EXPECT_EQ(plan.batch, 64);
  EXPECT_EQ(plan.model, "cnn");
  EXPECT_EQ(plan.microbatch, 64);
  EXPECT_EQ(plan.own.size(), 3U);  // image_size, augment, label_smoothing: not options of the engine
  EXPECT_EQ(plan.rows().size(), plan_options().options().size() + 3);
  EXPECT_DOUBLE_EQ(plan.peak_lr(), 0.15);  // linear: 64 of 128
}

TEST(Resolve, EveryValueHasAReasonOrAnOrigin) {
  const Plan plan = resolve({}, facts_of(1000));
  for (const core::Option& each : plan_options().options()) {
    EXPECT_TRUE(plan.notes.contains(each.key)) << each.key << " was never decided";
  }
}

TEST(Resolve, RefusesContradictions) {
  EXPECT_THAT(refusal(asked({"batch=2000"}), facts_of(1000)),
              HasSubstr("batch 2000 is larger than the 1000 training samples"));
  EXPECT_THAT(refusal(asked({"microbatch=65"}), facts_of(1000)), HasSubstr("microbatch 65 is larger than batch 64"));
  EXPECT_THAT(refusal(asked({"freeze=2"}), facts_of(1000)), HasSubstr("set weights=FILE"));
  EXPECT_THAT(refusal(asked({"nvtx=on"}), facts_of(1000)), HasSubstr("remove it"));
  EXPECT_THAT(refusal(asked({"half_weights=on", "precision=fp32"}), facts_of(1000)), HasSubstr("precision=bf16"));
  EXPECT_THAT(refusal(asked({"batch=1"}), facts_of(1000)), HasSubstr("batch norm"));
  EXPECT_THAT(refusal(asked({"tail=keep"}), facts_of(65)), HasSubstr("set tail=drop"));
  EXPECT_THAT(refusal(asked({"microbatch=2", "batch=3"}), facts_of(1000)), HasSubstr("batch=3 microbatch=2"));  // 1 + 2
  EXPECT_THAT(refusal(asked({"tail=drop", "batch=1"}), facts_of(1000)), HasSubstr("batch norm"));
  EXPECT_THAT(refusal(asked({"early_stop=3"}), facts_of(1000)), HasSubstr("validation split"));
  EXPECT_THAT(refusal(asked({"sync_bn=on", "ranks=2", "recompute=all"}), facts_of(1000)), HasSubstr("recompute=none"));
  EXPECT_THAT(refusal(asked({"sync_bn=on", "ranks=2", "pipeline=2"}), facts_of(1000)), HasSubstr("pipeline=2"));
  EXPECT_EQ(refusal(asked({"sync_bn=on", "ranks=2"}), facts_of(1000)), "");
  EXPECT_EQ(refusal(asked({"sync_bn=on", "recompute=all"}), facts_of(1000)), "");  // one process
  EXPECT_THAT(refusal({}, facts_of(0)), HasSubstr("no training sample"));
}

TEST(Resolve, RefusesWhatAnOptimizerInBackwardExcludes) {
  const auto with = [](std::string_view more) {
    Options options = asked({"optimizer_in_backward=on"});
    options.set_assignment(more);
    return refusal(options, facts_of(1000));
  };
  const char* off = "or set optimizer_in_backward=off";
  EXPECT_EQ(with("seed=1"), "");
  EXPECT_EQ(with("recompute=all"), "");
  EXPECT_THAT(with("microbatch=16"), AllOf(HasSubstr("microbatch=16 below batch=64"), HasSubstr(off)));
  EXPECT_THAT(with("microbatch=auto"), AllOf(HasSubstr("microbatch=auto"), HasSubstr(off)));
  EXPECT_THAT(with("batch=auto"), AllOf(HasSubstr("batch=auto"), HasSubstr(off)));
  EXPECT_THAT(with("microbatch_schedule=1:16"), AllOf(HasSubstr("microbatch_schedule="), HasSubstr(off)));
  EXPECT_THAT(with("clip=1"), AllOf(HasSubstr("set clip=0"), HasSubstr(off)));
  EXPECT_THAT(with("precision=fp16"), AllOf(HasSubstr("set precision=bf16"), HasSubstr(off)));
  EXPECT_THAT(with("skip_limit=3"), AllOf(HasSubstr("remove skip_limit"), HasSubstr(off)));
  EXPECT_THAT(with("device=cuda:0"), AllOf(HasSubstr("set device=cpu"), HasSubstr(off)));
  Facts facts = facts_of(1000);
  facts.ranks = 2;
  EXPECT_THAT(refusal(asked({"optimizer_in_backward=on"}), facts), HasSubstr("ranks=2"));
  facts = facts_of(1000);
  facts.recipe.push_back({"clip", "1", core::Origin::kDefault, "a recipe's default"});
  EXPECT_THAT(refusal(asked({"optimizer_in_backward=on"}), facts), HasSubstr("set clip=0"));
  EXPECT_EQ(resolve(asked({"optimizer_in_backward=on"}), facts_of(1000)).skip_limit, 0);
  EXPECT_EQ(resolve({}, facts_of(1000)).skip_limit, 10);
}

// For users who study the effect of a GPU's fp16 on a run: the numbers are the same, the time is not.
TEST(Resolve, Fp16OnACpuIsDoneWithAWarning) {
  const Plan plan = resolve(asked({"precision=fp16"}), facts_of(1000));
  EXPECT_EQ(plan.precision, "fp16");
  EXPECT_THAT(plan.notes.at("precision").reason, HasSubstr("slower than fp32"));
  EXPECT_THAT(resolve(asked({"precision=bf16"}), facts_of(1000)).notes.at("precision").reason,
              Not(HasSubstr("slower")));
}

TEST(Resolve, ALonelyTailIsDroppedAndSaidSo) {
  const Plan plan = resolve({}, facts_of(129));
  EXPECT_EQ(plan.tail, "drop");
  EXPECT_EQ(plan.notes.at("tail").origin, core::Origin::kAdvice);
  EXPECT_EQ(steps_per_epoch(plan, 129), 2);
  Facts without_norm = facts_of(129);
  without_norm.couples_samples = false;
  EXPECT_EQ(steps_per_epoch(resolve({}, without_norm), 129), 3);
}

TEST(Resolve, ATailThatMicrobatchesCutToOneIsDropped) {
  const Plan plan = resolve(asked({"batch=64", "microbatch=2"}), facts_of(69));  // a tail of 5: passes of 1, 2, 2
  EXPECT_EQ(plan.tail, "drop");
  EXPECT_EQ(smallest_pass(plan, 69), 2);
}

TEST(Resolve, ASmallDatasetIsOneBatch) {
  const Plan plan = resolve({}, facts_of(10));
  EXPECT_EQ(plan.batch, 10);
  EXPECT_EQ(total_steps(plan, 10), plan.epochs);
  EXPECT_EQ(total_steps(resolve(asked({"steps=7"}), facts_of(10)), 10), 7);
}

// A program's own task may name any key.
TEST(Resolve, RefusesADefaultOfATaskForAnUnknownOption) {
  Facts facts = facts_of(1000);
  facts.recipe.push_back({"learning_rate", "0.1", core::Origin::kDefault, ""});
  EXPECT_THAT(refusal({}, facts), HasSubstr("did you mean \"lr\"?"));
}

}  // namespace
}  // namespace stoker::train
