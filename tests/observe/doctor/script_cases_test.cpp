// SPDX-License-Identifier: Apache-2.0
// What the doctor says of real scripts with a planted fault, with its cure, and with something that looks like it and
// is none: from the records that tests/doctor/record_cases.py kept of tests/doctor/cases/.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <ostream>

#include "stoker/observe/doctor/examine.h"
#include "stoker/observe/doctor/script_facts.h"
#include "support/doctor_records.h"

namespace stoker::observe::doctor {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Case {
  const char* name;
  const char* rule;
  const char* said;  // in the claim
};
void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

constexpr Case kCases[] = {
    {"anomaly", "debug_apis_on", "Anomaly detection is on"},
    {"bound_workers", "input_wait", "its 2 workers may use 1 of the"},
    {"double_precision", "double_precision", "float64"},
    {"epoch_restart", "epoch_restart", "workers"},
    {"eval_with_grad", "eval_with_grad", "eval_with_grad.py:"},
    {"few_workers", "input_wait", "(num_workers=0) in __getitem__ (few_workers.py:"},
    {"fp16_no_scaler", "fp16_without_scaler", "fp16"},
    {"gc_churn", "gc_churn", "called at gc_churn.py:"},
    {"gc_off", "leak", "Garbage collection is off"},
    {"histograms", "tracker_cost", "Logging"},
    {"host_leak", "host_leak", "copies"},
    {"kept_outputs", "predictions_kept", "in `outputs` at kept_outputs.py:"},
    {"kept_history", "kept_history", "`total`"},
    {"list_collate", "input_wait", "collate makes the batch in slow (list_collate.py:"},
    {"many_checkpoints", "checkpoint_stall", "Checkpoints"},
    {"many_tensors", "input_wait", "514 tensors per batch"},
    {"micro_reduce", "reduce_every_microbatch", "4.0 times per step"},
    {"numpy_in_loop", "host_code", "numpy in rank (numpy_in_loop.py:"},
    {"page_faults", "page_faults", "page faults per step"},
    {"pandas_rows", "input_wait", "pandas in __getitem__ (pandas_rows.py:"},
    {"profiler_on", "debug_apis_on", "profiler"},
    {"ranks_drift", "ranks_drift_apart", "differ"},
    {"same_batch", "same_batch", "2 workers"},
    {"scaler_collapse", "scaler_collapse", "50 %"},
    {"slow_storage", "input_wait", "reading on 1 worker"},
    {"straggler", "straggler", "Rank 1"},
    {"too_many_threads", "oversubscribed_threads", "threads"},
    {"uneven_work", "uneven_work", "unequal work"},
    {"unfused_optimizer", "optimizer_unfused", "AdamW updates 130 tensors"},
    {"unread_result", "unread_result", "unread_result.py:"},
    {"whole_file", "input_wait", "8.00 MiB of files"},
    {"zero_grad", "zero_grad_not_none", "zero_grad.py:"},
};

std::filesystem::path records() { return testing::doctor_records("records"); }

class ScriptCase : public ::testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] static Diagnosis of(const char* variant) {
    const Facts facts = script_facts(records() / GetParam().name / variant);
    EXPECT_THAT(facts.damage, IsEmpty());
    return examine(facts);
  }
};

TEST_P(ScriptCase, TheSickOneHasItsCauseFirst) {
  const Diagnosis diagnosis = of("sick");
  ASSERT_FALSE(diagnosis.found.empty());
  EXPECT_EQ(diagnosis.found[0].rule->id, GetParam().rule);
  EXPECT_THAT(diagnosis.found[0].finding.claim, HasSubstr(GetParam().said));
}

TEST_P(ScriptCase, TheCuredOneIsRidOfIt) {
  for (const Found& each : of("cured").found) {
    EXPECT_FALSE(each.critical()) << each.finding.claim;
    EXPECT_FALSE(each.worth_saying() && each.rule->id == GetParam().rule) << each.finding.claim;
  }
}

TEST_P(ScriptCase, TheHealthyOneGetsNoAdvice) {
  for (const Found& each : of("healthy").found) {
    EXPECT_FALSE(each.worth_saying()) << each.finding.claim;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ScriptCase, ::testing::ValuesIn(kCases),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(ScriptCases, HaveRecords) { EXPECT_EQ(testing::names_of(kCases), testing::names_in(records())); }

}  // namespace
}  // namespace stoker::observe::doctor
