// SPDX-License-Identifier: Apache-2.0
// The rules of a script on a GPU and of kernels' names: each with a sick training, one below its threshold, and one
// that looks sick and is not. The sick ones lie within a factor of two of the threshold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/observe/doctor/examine.h"
#include "stoker/observe/doctor/trace_facts.h"
#include "support/doctor_rules.h"
#include "support/trace_text.h"

namespace stoker::observe::doctor {
namespace {

using testing::abstains;
using testing::facts_of;
using testing::finding_of;
using ::testing::HasSubstr;
using testing::TraceText;

// Steps of 10 ms: the device computes for `device` of them, and the host works for `host`.
Facts steps_of(double device, double host) {
  Facts facts;
  facts.source = Source::kTrace;
  for (int i = 0; i < 5; ++i) {
    Period period{.last_step = i + 1, .steps = 1, .seconds = 0.01, .parts = {}, .loader = {}};
    period.parts["compute"].seconds = device;
    period.parts["launching"].seconds = 0.01 - device;
    facts.periods.push_back(std::move(period));
  }
  for (const auto& [name, value] : {std::pair("step.seconds", 0.01),
                                    {"device.seconds", device},
                                    {"host.seconds", host},
                                    {"kernels.plain_product_share", 0.0},
                                    {"kernels.tf32_product_share", 0.0},
                                    {"kernels.layout_share", 0.0},
                                    {"operators.attention_share", 0.0},
                                    {"waits.steps", 3.0}}) {
    facts.figures[name] = {value, "trace"};
  }
  return facts;
}

Facts with(Facts facts, const char* figure, double value) {
  facts.figures[figure] = {value, "trace"};
  return facts;
}

// Without a look at the device, where the host needs 2 ms and the device 10.
Facts device_bound() { return steps_of(0.01, 0.002); }
// The other way round.
Facts host_bound() { return steps_of(0.002, 0.01); }

TEST(ConvBiasBeforeNorm, CostsKernelsOfItsOwn) {
  Facts facts = with(with(device_bound(), "layers.convolutions", 53), "layers.biased_before_norm", 20);
  const auto finding = finding_of(facts, "conv_bias_before_norm");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->claim, HasSubstr("20 of 53 convolutions"));
  EXPECT_NEAR(finding->gain.speedup, 1 / (1 - 0.12 * 20 / 53), 1e-3);
  EXPECT_FALSE(finding_of(with(facts, "layers.biased_before_norm", 12), "conv_bias_before_norm"));
  EXPECT_FALSE(finding_of(with(facts, "layers.biased_before_norm", 0), "conv_bias_before_norm"));
  EXPECT_FALSE(finding_of(device_bound(), "conv_bias_before_norm"));  // no convolution
  EXPECT_TRUE(abstains(Facts(), "conv_bias_before_norm"));
}

TEST(NoTensorCore, IsToldOfSgemmWhereTheDeviceIsTheLimit) {
  const auto finding = finding_of(with(device_bound(), "kernels.plain_product_share", 0.12), "no_tensor_core");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->option, "torch.set_float32_matmul_precision('high')");
  EXPECT_NEAR(finding->gain.speedup, 1 / (1 - 0.8 * 0.12), 1e-3);
  EXPECT_FALSE(finding_of(with(device_bound(), "kernels.plain_product_share", 0.09), "no_tensor_core"));
  EXPECT_TRUE(abstains(Facts(), "no_tensor_core"));
}

TEST(NoTensorCore, TheSwitchIsThatOfTheProductsAndOfTheGpu) {
  const Facts products = with(device_bound(), "kernels.plain_product_share", 0.4);
  EXPECT_EQ(finding_of(with(products, "kernels.plain_convolution_share", 0.1), "no_tensor_core")->option,
            "torch.set_float32_matmul_precision('high')");
  const auto convolutions = finding_of(with(products, "kernels.plain_convolution_share", 0.3), "no_tensor_core");
  EXPECT_EQ(convolutions->option, "");
  EXPECT_THAT(convolutions->cure, HasSubstr("cudnn.allow_tf32"));
  EXPECT_THAT(finding_of(with(products, "device.compute_major", 7), "no_tensor_core")->cure, HasSubstr("float16"));
  EXPECT_FALSE(finding_of(with(products, "device.compute_major", 6), "no_tensor_core"));
}

TEST(NoTensorCore, GainsNothingWhereTheHostIsTheLimit) {
  const auto finding = finding_of(with(host_bound(), "kernels.plain_product_share", 0.9), "no_tensor_core");
  ASSERT_TRUE(finding);
  EXPECT_LT(finding->gain.speedup, 1 + kWorthSaying);
}

TEST(NoTensorCore, TheHostIsTheNextLimit) {
  const auto finding = finding_of(with(steps_of(0.01, 0.008), "kernels.plain_product_share", 0.9), "no_tensor_core");
  ASSERT_TRUE(finding);
  EXPECT_NEAR(finding->gain.speedup, 10.0 / 8.0, 1e-3);
}

TEST(NoTensorCore, AutocastIsToldOfTf32) {
  const auto finding = finding_of(with(device_bound(), "kernels.tf32_product_share", 0.25), "no_tensor_core");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->option, "torch.autocast('cuda', torch.bfloat16)");
  EXPECT_NEAR(finding->gain.speedup, 1 / (1 - 0.8 * 0.6 * 0.25), 1e-3);
  EXPECT_FALSE(finding_of(with(device_bound(), "kernels.tf32_product_share", 0.15), "no_tensor_core"));
  // Autocast makes the host slower, so it takes over: 6 ms become 7.8.
  const auto near = finding_of(with(steps_of(0.01, 0.006), "kernels.tf32_product_share", 0.5), "no_tensor_core");
  ASSERT_TRUE(near);
  EXPECT_NEAR(near->gain.speedup, 1 / 0.78, 1e-3);
}

TEST(Layout, IsToldOfConversions) {
  const auto finding = finding_of(with(device_bound(), "kernels.layout_share", 0.06), "layout");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->option, "memory_format=torch.channels_last");
  EXPECT_FALSE(finding_of(with(device_bound(), "kernels.layout_share", 0.04), "layout"));
  // float32 convolutions without tensor cores convert to NCHW: there channels_last is the fault.
  const auto hurts = finding_of(
      with(with(device_bound(), "kernels.layout_share", 0.09), "kernels.plain_product_share", 0.6), "layout");
  ASSERT_TRUE(hurts);
  EXPECT_THAT(hurts->cure, HasSubstr("contiguous"));
}

TEST(Layout, FewerKernelsAreLessForTheHost) {
  const Facts facts = with(with(host_bound(), "kernels.layout_share", 0.1), "kernels.layout_count_share", 0.2);
  const auto finding = finding_of(facts, "layout");
  ASSERT_TRUE(finding);
  EXPECT_NEAR(finding->gain.speedup, 1 / (1 - 1.4 * 0.2), 1e-3);
}

TEST(AttentionUnfused, IsToldOfItsShare) {
  EXPECT_TRUE(finding_of(with(device_bound(), "operators.attention_share", 0.12), "attention_unfused"));
  EXPECT_FALSE(finding_of(with(device_bound(), "operators.attention_share", 0.08), "attention_unfused"));
  EXPECT_TRUE(abstains(Facts(), "attention_unfused"));
}

Facts with_call(Facts facts, const char* kind, double times, double seconds, std::int64_t looks = 0) {
  facts.waits = {{.call = "to",
                  .kind = kind,
                  .where = "train.py:7",
                  .text = "x = x.to(device)",
                  .times = times,
                  .seconds = seconds,
                  .bytes = 1e6}};
  facts.sites = {{.part = "other", .where = "train.py:7", .text = "", .module = "", .looks = looks},
                 {.part = "backward", .where = "train.py:9", .text = "", .module = "", .looks = 100 - looks}};
  return facts;
}

TEST(PageableCopies, AreToldWithTheirLine) {
  const auto finding =
      finding_of(with_call(steps_of(0.005, 0.009), "to_gpu pageable blocking", 2, 0.0003), "pageable_h2d");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->option, "pin_memory=True");
  EXPECT_THAT(finding->evidence.at(0), HasSubstr("train.py:7 (x = x.to(device)): 2 times and 0.3 ms per step, 1 MB"));
  EXPECT_NEAR(finding->gain.speedup, 1 / (1 - 2.5 * 0.03), 1e-3);
  EXPECT_FALSE(finding_of(with_call(steps_of(0.005, 0.009), "to_gpu pageable blocking", 2, 0.00015), "pageable_h2d"));
  EXPECT_FALSE(finding_of(with_call(steps_of(0.005, 0.009), "to_gpu pinned async", 2, 0.003), "pageable_h2d"));
  EXPECT_TRUE(abstains(with(Facts(), "kernels.layout_share", 0), "pageable_h2d"));
}

// Told by the size of a tensor: 1 MB in two copies, of a batch of two tensors or not.
TEST(PageableCopies, OfAModelAreMadeOnTheDevice) {
  const auto found = [](double bytes_per_batch) {
    Facts facts = with_call(steps_of(0.005, 0.009), "to_gpu pageable blocking", 2, 0.0003);
    facts = with(with(facts, "loader.tensors_per_batch", 2), "loader.bytes_per_batch", bytes_per_batch);
    return *finding_of(facts, "pageable_h2d");
  };
  EXPECT_THAT(found(0.2e6).cure, HasSubstr("make these tensors on the GPU"));
  EXPECT_EQ(found(0.2e6).option, "");
  EXPECT_EQ(found(0.3e6).option, "pin_memory=True");
  EXPECT_EQ(found(1.9e6).option, "pin_memory=True");
  EXPECT_EQ(found(2.1e6).option, "");
}

TEST(PageableCopies, OfALoaderThatPinsWereChangedAfterwards) {
  const auto finding = finding_of(
      with(with_call(steps_of(0.005, 0.009), "to_gpu pageable blocking", 2, 0.0003), "loader.pin", 1), "pageable_h2d");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->option, "");
}

TEST(PageableCopies, GainNothingWhereTheDeviceIsTheLimit) {
  const auto finding = finding_of(with_call(device_bound(), "to_gpu pageable blocking", 2, 0.003), "pageable_h2d");
  ASSERT_TRUE(finding);
  EXPECT_LT(finding->gain.speedup, 1 + kWorthSaying);
}

// The device waits for nobody, but the host spends its time in reads.
TEST(SyncPoint, CountsReadsWhereTheHostIsTheLimit) {
  const auto finding = finding_of(with_call(host_bound(), "read", 100, 0.0003), "sync_point");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->claim, HasSubstr("reads values of the GPU 3.0 % of the time"));
  EXPECT_THAT(finding_of(with_call(host_bound(), "read", 100, 0.0003, 20), "sync_point")->claim,
              HasSubstr("15 %"));  // the line does more
  EXPECT_FALSE(finding_of(with_call(host_bound(), "read", 1, 0.00015), "sync_point"));
  EXPECT_FALSE(finding_of(with_call(device_bound(), "read", 1, 0.005), "sync_point"));  // its waits cost nothing
}

// Facts of a script with a burst.
Facts script_of(Facts burst) {
  Facts facts;
  facts.source = Source::kScript;
  facts.periods = burst.periods;
  for (Period& period : facts.periods) {
    period.last_step *= 10;
    period.steps = 10;
    period.seconds *= 10;
    period.parts = {{"backward", {0.05, -1}}, {"other", {0.05, -1}}};
  }
  facts.burst = std::make_shared<Facts>(std::move(burst));
  return facts;
}

TEST(BlockingLaunches, CostTheDevicesTimeAndARoundTripPerKernel) {
  Facts facts = script_of(with(steps_of(0.002, 0.01), "kernels.per_step", 100));
  EXPECT_FALSE(finding_of(facts, "debug_apis_on"));
  facts.words["switch.environment.CUDA_LAUNCH_BLOCKING"] = "0";
  EXPECT_FALSE(finding_of(facts, "debug_apis_on"));
  facts.words["switch.environment.CUDA_LAUNCH_BLOCKING"] = "1";
  const auto finding = finding_of(facts, "debug_apis_on");
  ASSERT_TRUE(finding);
  EXPECT_NEAR(finding->gain.speedup, 1 / (1 - 0.8 * 0.27), 1e-3);
}

TEST(AnomalyDetection, CostsMoreOnAGpu) {
  Facts facts = script_of(steps_of(0.002, 0.01));
  facts.words["switch.anomaly"] = "true";
  EXPECT_NEAR(finding_of(facts, "debug_apis_on")->gain.speedup, 1 / (1 - 1.3 * 0.75 * 0.5), 1e-3);
  facts.burst = nullptr;
  EXPECT_NEAR(finding_of(facts, "debug_apis_on")->gain.speedup, 1 / (1 - 1.3 * 0.5 * 0.5), 1e-3);
}

TEST(EmaLoop, IsToldOfALineWithManyLooks) {
  Facts facts = script_of(host_bound());
  const auto loop = [&](std::int64_t looks, const char* text, const char* part = "other") {
    facts.sites = {{.part = part, .where = "train.py:7", .text = text, .module = "", .looks = looks},
                   {.part = "backward", .where = "train.py:9", .text = "", .module = "", .looks = 100 - looks}};
    return finding_of(facts, "ema_loop");
  };
  const auto finding = loop(6, "average.mul_(0.999).add_(parameter, alpha=0.001)");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->evidence.at(0), HasSubstr("train.py:7"));
  EXPECT_FALSE(loop(3, "average.mul_(0.999).add_(parameter, alpha=0.001)"));
  EXPECT_FALSE(loop(6, "y = layer(x)"));
  EXPECT_FALSE(loop(6, "parameter.grad.mul_(scale).add_(noise, alpha=0.1)"));
  EXPECT_FALSE(loop(6, "mask.mul_(2)"));
  EXPECT_FALSE(loop(6, "average.lerp_(parameter, 0.001)", "optimizer"));
  facts.burst = nullptr;
  EXPECT_FALSE(loop(6, "average.mul_(0.999).add_(parameter, alpha=0.001)"));
}

double gain_of(const Facts& facts, std::string_view rule) {
  for (const Found& each : examine(facts).found) {
    if (each.rule->id == rule) {
      return each.finding.gain.speedup;
    }
  }
  return 0;
}

// What a script's host saves counts until the GPU is the limit.
TEST(Examine, GainsOfTheHostEndAtTheDevice) {
  const auto gain = [](double device) {
    Facts facts = script_of(steps_of(device, 0.01));
    for (Period& period : facts.periods) {
      period.parts["logging"] = {0.04, 0.04};
    }
    return gain_of(facts, "tracker_cost");
  };
  EXPECT_GT(gain(0.002), 1.4);
  EXPECT_NEAR(gain(0.008), 1.25, 1e-9);
  EXPECT_NEAR(gain(0.01), 1, 1e-9);
}

// A checkpoint holds up both.
TEST(Examine, PausesCountAlsoWhereTheDeviceIsTheLimit) {
  Facts facts = script_of(device_bound());
  for (Period& period : facts.periods) {
    period.parts["checkpoint"] = {0.04, 0.04};
  }
  facts.figures["checkpoints.count"] = {5, "script"};
  EXPECT_GT(gain_of(facts, "checkpoint_stall"), 1.3);
}

// They may come rarer than the burst is long.
TEST(Examine, CompilationsOfAScriptAreFoundBesideItsBurst) {
  Facts facts = script_of(device_bound());
  EXPECT_EQ(gain_of(facts, "recompiles"), 0);
  for (Period& period : facts.periods) {
    period.parts["compile"] = {0.03, 0.03};
  }
  EXPECT_GT(gain_of(facts, "recompiles"), 1.1);
}

TEST(TraceFactsOfDoctor, TellKernelsByTheirNames) {
  TraceText text;
  text.step(1, 1000, 1000);
  const char* names[] = {"cutlass_80_simt_sgemm_128x256_8x4_nt_align1",
                         "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_ffma_aligna4",
                         "sm90_xmma_gemm_f32f32_tf32f32_f32_nt_n_tilesize128",
                         "cutlass_80_tensorop_s1688gemm_128x128",
                         "void cudnn::nchwToNhwcKernel<float>",
                         "nvjet_sm90_tst_192x128",
                         "elementwise_kernel",
                         "ncclDevKernel_AllReduce_Sum_f32"};
  int i = 0;
  for (const char* name : names) {
    text.call("cudaLaunchKernel", 1000 + 100 * i, 3, i + 1).kernel(name, 1010 + 100 * i, 50, i + 1);
    ++i;
  }
  const Facts facts = trace_facts(*facts_of(text));
  EXPECT_NEAR(*facts.figure("kernels.plain_product_share"), 2.0 / 7, 1e-9);
  EXPECT_NEAR(*facts.figure("kernels.tf32_product_share"), 1.0 / 7, 1e-9);
  EXPECT_NEAR(*facts.figure("kernels.layout_share"), 1.0 / 7, 1e-9);
  EXPECT_NEAR(*facts.figure("kernels.layout_count_share"), 1.0 / 7, 1e-9);
}

}  // namespace
}  // namespace stoker::observe::doctor
