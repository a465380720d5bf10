// SPDX-License-Identifier: Apache-2.0
// The facts of recorded traces, and the rules that read them: each with a sick trace, one below its threshold, and one
// that looks sick and is not. The sick ones lie within a factor of two of the threshold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "stoker/observe/doctor/examine.h"
#include "stoker/observe/doctor/trace_facts.h"
#include "support/doctor_rules.h"
#include "support/trace_text.h"

namespace stoker::observe::doctor {
namespace {

using testing::abstains;
using ::testing::AllOf;
using testing::facts_of;
using testing::finding_of;
using ::testing::HasSubstr;
using testing::TraceText;

// Two steps of 1 ms in which the device computes all the time, but for what `gap` leaves free at the end of each.
// `during` is what the host does in the gap.
constexpr double kAbove = 45, kBelow = 30;  // us; the launch that ends a gap takes 15 of them
template <typename During>
Facts two_steps(double gap, const During& during) {
  TraceText text;
  for (int i = 0; i < 2; ++i) {
    const double begin = 10'000 + 1000 * i;
    text.step(i + 1, begin, 1000);
    text.call("cudaLaunchKernel", begin - 20, 3, 2 * i + 1).kernel("gemm", begin, 1000 - gap, 2 * i + 1);
    during(text, begin + 1000 - gap, gap);
  }
  // What ends the last gap.
  text.call("cudaLaunchKernel", 11'996, 3, 99).kernel("gemm", 12'000, 500, 99);
  return trace_facts(*facts_of(text));
}

Facts with_call(double gap, const std::string& category, const std::string& name) {
  return two_steps(
      gap, [&](TraceText& text, double begin, double length) { text.host(category, name, begin - 1, length + 1 - 5); });
}

TEST(TraceFactsOfDoctor, PartsOfAStepSumToItsTime) {
  const Facts facts = with_call(200, "user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
  ASSERT_EQ(facts.periods.size(), 2U);
  for (const Period& period : facts.periods) {
    EXPECT_NEAR(period.seconds, 1e-3, 1e-12);
    double sum = 0;
    for (const auto& [name, time] : period.parts) {
      sum += time.seconds;
    }
    EXPECT_NEAR(sum, period.seconds, 1e-12);
    EXPECT_NEAR(period.part("compute"), 0.8e-3, 1e-12);
    EXPECT_NEAR(period.part("fetch"), 0.2e-3, 0.03e-3);  // the rest is the launch
  }
  EXPECT_DOUBLE_EQ(*facts.figure("steps.marked"), 2);
  EXPECT_NEAR(*facts.figure("kernels.median_seconds"), 0.8e-3, 1e-12);
}

TEST(InputWaitInTraces, HasItsThreshold) {
  const char* const fetch = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
  const auto finding = finding_of(with_call(80, "user_annotation", fetch), "input_wait");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->claim, AllOf(HasSubstr("waits for data"), HasSubstr("SingleProcess")));
  EXPECT_THAT(finding->cure, HasSubstr("1 or more"));
  EXPECT_GT(finding->gain.speedup, 1.04);
  EXPECT_LE(finding->gain.high, 1 / (1 - 0.08) + 1e-6);  // the device computes the rest of the time
  EXPECT_FALSE(finding_of(with_call(60, "user_annotation", fetch), "input_wait"));
  // The loader takes as long, but the device has work meanwhile.
  const Facts hidden = two_steps(
      0, [&](TraceText& text, double begin, double) { text.host("user_annotation", fetch, begin - 900, 800); });
  EXPECT_FALSE(finding_of(hidden, "input_wait"));
}

TEST(SyncPoint, CountsOnlyWhatIsExposed) {
  const auto finding = finding_of(with_call(kAbove, "cuda_runtime", "cudaStreamSynchronize"), "sync_point");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->claim, HasSubstr("cudaStreamSynchronize"));
  EXPECT_FALSE(finding_of(with_call(kBelow, "cuda_runtime", "cudaStreamSynchronize"), "sync_point"));
  const Facts hidden = two_steps(0, [&](TraceText& text, double begin, double) {
    text.host("cuda_runtime", "cudaStreamSynchronize", begin - 900, 890);
  });
  EXPECT_FALSE(finding_of(hidden, "sync_point"));  // 89 % of the time in the call, and the device busy
}

// Kernels of `length` us, launched one after the other by operators, one in `every` us.
Facts launches(double length, double every = 40) {
  TraceText text;
  int correlation = 0;
  for (int step = 0; step < 2; ++step) {
    text.step(step + 1, 10'000 + 1000 * step, 1000);
    for (double at = 0; at < 1000; at += every) {
      const double begin = 10'000 + 1000 * step + at;
      ++correlation;
      text.op("aten::mul", begin, every - 1).call("cudaLaunchKernel", begin + every - 10, 3, correlation);
      text.kernel("mul", begin + every - 5, length, correlation);
    }
  }
  return trace_facts(*facts_of(text));
}

TEST(LaunchBound, HasItsThresholds) {
  const auto finding = finding_of(launches(28), "launch_bound");  // idle 30 % of the time
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->claim, HasSubstr("28.0 us"));
  Facts known = launches(28);
  for (const auto& [name, value] : {std::pair("loader.batch", 32.0),
                                    {"memory.rest_bytes", 2e9},
                                    {"memory.peak_bytes", 10e9},
                                    {"memory.total_bytes", 80e9}}) {
    known.figures[name] = {value, "script"};
  }
  EXPECT_THAT(finding_of(known, "launch_bound")->evidence.back(), HasSubstr("about 280 rows"));
  EXPECT_FALSE(finding_of(launches(36), "launch_bound"));       // idle a tenth of it
  EXPECT_FALSE(finding_of(launches(75, 110), "launch_bound"));  // idle a third of it, but between long kernels
  Facts rare = launches(28);
  const double kernels = rare.figures["kernels.per_step"].value;
  rare.figures["idle.latency.times"].value = 0;
  rare.figures["idle.launching.times"].value = 0.14 * kernels;  // long gaps: libraries are loaded
  EXPECT_FALSE(finding_of(rare, "launch_bound"));
  rare.figures["idle.launching.times"].value = 0.45 * kernels;
  EXPECT_TRUE(finding_of(rare, "launch_bound"));
  const Facts few = two_steps(350, [](TraceText& text, double begin, double length) {
    text.op("aten::index", begin - 1, length + 1 - 5);  // one slow operator: kernels are long
  });
  EXPECT_FALSE(finding_of(few, "launch_bound"));
}

TEST(AllocChurn, HasItsThresholdAndNeedsSteps) {
  EXPECT_TRUE(finding_of(with_call(kAbove, "cuda_runtime", "cudaFree"), "alloc_churn"));
  EXPECT_FALSE(finding_of(with_call(kBelow, "cuda_runtime", "cudaFree"), "alloc_churn"));
  Facts unmarked = with_call(kAbove, "cuda_runtime", "cudaFree");
  unmarked.figures["steps.marked"].value = 0;
  EXPECT_TRUE(abstains(unmarked, "alloc_churn"));
}

TEST(Recompiles, HaveTheirThreshold) {
  EXPECT_TRUE(finding_of(with_call(kAbove, "cuda_runtime", "cuModuleLoadData"), "recompiles"));
  EXPECT_FALSE(finding_of(with_call(kBelow, "cuda_runtime", "cuModuleLoadData"), "recompiles"));
}

// The device does something else in the gap.
Facts with_work(double gap, const std::string& category, const std::string& name, bool beside = false) {
  int correlation = 200;
  return two_steps(gap, [&](TraceText& text, double begin, double length) {
    text.call("cudaLaunchKernel", begin - 30, 3, ++correlation);
    text.work(category, name, beside ? begin - 500 : begin, length, correlation, 20);
  });
}

TEST(UnoverlappedAllReduce, HasItsThreshold) {
  const char* const reduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)";
  EXPECT_TRUE(finding_of(with_work(80, "kernel", reduce), "unoverlapped_all_reduce"));
  EXPECT_FALSE(finding_of(with_work(30, "kernel", reduce), "unoverlapped_all_reduce"));
  EXPECT_FALSE(finding_of(with_work(80, "kernel", reduce, true), "unoverlapped_all_reduce"));
}

TEST(SerialH2d, HasItsThreshold) {
  const char* const copy = "Memcpy HtoD (Pageable -> Device)";
  const auto finding = finding_of(with_work(50, "gpu_memcpy", copy), "serial_h2d");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->evidence.back(), AllOf(HasSubstr("pageable"), HasSubstr("100 %")));
  EXPECT_FALSE(finding_of(with_work(20, "gpu_memcpy", copy), "serial_h2d"));
  EXPECT_FALSE(finding_of(with_work(50, "gpu_memcpy", copy, true), "serial_h2d"));
}

TEST(TraceRules, AreSilentAboutABusyDevice) {
  const Diagnosis diagnosis = examine(two_steps(0, [](TraceText&, double, double) {}));
  EXPECT_TRUE(diagnosis.found.empty());
  EXPECT_THAT(diagnosis.verdict, HasSubstr("Healthy"));
}

// Nothing that a rule knows explains the idle time: that is no health.
TEST(TraceRules, CallNoIdleDeviceHealthy) {
  const Diagnosis diagnosis = examine(two_steps(600, [](TraceText&, double, double) {}));
  EXPECT_THAT(diagnosis.verdict, AllOf(HasSubstr("No cause was found"), HasSubstr("worked 40 %")));
}

TEST(TraceRules, AbstainOnARun) {
  Facts facts;
  for (const char* rule :
       {"sync_point", "launch_bound", "alloc_churn", "recompiles", "unoverlapped_all_reduce", "serial_h2d"}) {
    EXPECT_TRUE(abstains(facts, rule)) << rule;
  }
}

}  // namespace
}  // namespace stoker::observe::doctor
