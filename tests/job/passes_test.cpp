// SPDX-License-Identifier: Apache-2.0
// microbatch=auto and batch=auto on real set-ups: the search finds the most that fits under a limit, decides the plan,
// and leaves nothing behind.
#include "stoker/job/passes.h"

#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/device/backend.h"
#include "stoker/device/host_allocator.h"
#include "stoker/job/job.h"
#include "stoker/job/setup.h"
#include "stoker/job/step_probes.h"
#include "support/dispatch_counter.h"
#include "support/image_set.h"
#include "support/job_runs.h"

namespace stoker::job {
namespace {

using stoker::testing::complaint;
using stoker::testing::TempFolder;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using Prepared = Setup;  // gtest's fixtures have a member named Setup

class PassesTest : public ::testing::Test {
 protected:
  PassesTest() {
    device::install_host_allocator();
    stoker::testing::write_striped_set(folder_, "data/train/", 40);
  }
  ~PassesTest() override { device::backend_for(c10::Device(c10::kCPU)).limit_memory(c10::Device(c10::kCPU), 0); }

  // Nothing but what a test asks for is measured.
  [[nodiscard]] Request request_with(std::vector<std::string> words) const {
    words.insert(words.end(),
                 {"device=cpu", "threads=0", "intra_op=1", "precision=fp32", "layout=contiguous", "val=0"});
    Request request = make_request({}, words);
    request.data = folder_ / "data";
    request.run = (folder_ / "run").native();
    return request;
  }
  [[nodiscard]] Prepared set_up_with(
      const std::vector<std::string>& words, const Say& say = [](const std::string&) {}) const {
    return set_up(request_with(words), nullptr, say);
  }
  [[nodiscard]] std::size_t files() const {
    std::size_t count = 0;
    for (const auto& each : std::filesystem::recursive_directory_iterator(folder_.path())) {
      count += each.exists() ? 1 : 0;
    }
    return count;
  }

  TempFolder folder_;
};

std::string bytes(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().contiguous();
  return {static_cast<const char*>(flat.const_data_ptr()), flat.nbytes()};
}

// Values of all tensors of a model, and whether it has gradients.
std::vector<std::string> all_of(const tasks::Model& model) {
  std::vector<std::string> result;
  for (const core::Parameter& each : model.parameters()) {
    result.push_back(each.name + bytes(each.tensor) + (each.tensor.grad().defined() ? " a gradient" : ""));
  }
  for (const core::NamedTensor& each : model.buffers()) {
    result.push_back(each.name + bytes(each.tensor));
  }
  return result;
}

// A limit under which a pass of about this many samples fits.
std::int64_t limit_for(const Prepared& setup, std::int64_t samples, bool whole_batches) {
  StepProbes probes(setup, whole_batches);
  return probes.held() + probes.probe(samples).bytes + 1000;
}

// The most that fits, by the same probes.
std::int64_t most_by_bisection(const Prepared& setup, std::int64_t most, bool whole_batches) {
  StepProbes probes(setup, whole_batches);
  std::int64_t low = 1;
  while (low < most) {
    const std::int64_t middle = (low + most + 1) / 2;
    if (probes.probe(middle).fits) {
      low = middle;
    } else {
      most = middle - 1;
    }
  }
  return low;
}

TEST_F(PassesTest, TheLargestIsWithinFivePercentOfTheMostThatFits) {
  for (const char* optimizer : {"optimizer=sgd", "optimizer=adamw"}) {
    for (const std::int64_t samples : {23, 57}) {
      const std::vector<std::string> words = {"model=cnn", "batch=120", optimizer};
      const std::int64_t limit = limit_for(set_up_with(words), samples, false);
      std::vector<std::string> capped = words;
      capped.push_back(fmt::format("memory_limit={}", limit));
      const std::int64_t most = most_by_bisection(set_up_with(capped), 120, false);
      EXPECT_NEAR(static_cast<double>(most), static_cast<double>(samples), 4);
      capped.push_back("microbatch=auto");
      const Prepared tuned = set_up_with(capped);
      ASSERT_TRUE(tuned.passes);
      EXPECT_LE(tuned.passes->found.probes.size(), 8U);
      EXPECT_GE(static_cast<double>(tuned.passes->found.largest), 0.95 * static_cast<double>(most));
      EXPECT_LE(tuned.plan.microbatch, tuned.passes->found.largest);
      EXPECT_EQ(tuned.plan.batch, 120);
    }
  }
}

TEST_F(PassesTest, TheSearchLeavesNothingBehind) {
  const std::vector<std::string> words = {"model=resnet18", "batch=8", "optimizer=adamw", "ema=0.9"};
  const Prepared setup = set_up_with(words);
  const std::vector<std::string> before = all_of(*setup.model);
  const std::size_t files_before = files();
  const at::Tensor generator = at::globalContext().defaultGenerator(c10::Device(c10::kCPU)).get_state();
  const std::int64_t held = device::host_allocated();
  for (const bool whole_batches : {false, true}) {
    StepProbes probes(setup, whole_batches);
    EXPECT_TRUE(probes.probe(2).fits);
    EXPECT_TRUE(probes.probe(12).fits);
  }
  EXPECT_TRUE(all_of(*setup.model) == before);
  EXPECT_EQ(files(), files_before);
  EXPECT_EQ(device::host_allocated(), held);
  EXPECT_LT(device::host_cap(), 0) << "no limit was set";
  EXPECT_EQ(bytes(at::globalContext().defaultGenerator(c10::Device(c10::kCPU)).get_state()), bytes(generator));
  EXPECT_TRUE(all_of(*set_up_with(words).model) == before) << "two set-ups differ, so the comparison proves nothing";
}

TEST_F(PassesTest, TheLimitIsTheRunsAgainAfterwards) {
  const std::int64_t limit = 512 << 20;
  const Prepared setup = set_up_with({"model=cnn", "batch=16", fmt::format("memory_limit={}", limit)});
  {
    StepProbes probes(setup, false);
    EXPECT_LT(device::host_cap(), limit) << "the optimizer's state is kept free";
  }
  EXPECT_EQ(device::host_cap(), limit);
}

TEST_F(PassesTest, ARunThatSearchedEqualsOneThatDidNot) {
  const auto weights_of = [&](const std::string& microbatch) {
    Request request = request_with({"model=cnn", "batch=24", "steps=3", "tensorboard=off", microbatch});
    request.run = (folder_ / (microbatch == "microbatch=auto" ? "searched" : "given")).native();
    Job job = Job::prepare(request, [](const std::string&) {});
    const std::atomic<bool> stop = false;
    (void)job.train({}, stop);
    return std::pair(read_text(job.run_path() / "checkpoints" / "last" / "weights.safetensors"), job.plan().microbatch);
  };
  const auto [searched, microbatch] = weights_of("microbatch=auto");
  EXPECT_TRUE(searched == weights_of(fmt::format("microbatch={}", microbatch)).first);
}

TEST_F(PassesTest, ProbesMakeNoMoments) {
  const Prepared setup = set_up_with({"model=mlp", "batch=8", "optimizer=adamw", "ema=0.9"});
  StepProbes probes(setup, false);
  const testing::DispatchCounter counter;
  (void)probes.probe(4);
  EXPECT_GT(counter.calls("aten::linear"), 0);
  EXPECT_EQ(counter.calls("aten::zeros_like"), 0);
}

TEST_F(PassesTest, BatchAutoSetsTheBatchAndSaysWhatTheLearningRateBecomes) {
  std::vector<std::string> said;
  const Prepared setup = set_up_with({"model=cnn", "batch=auto", "optimizer=sgd", "lr=0.1", "lr_batch=64"},
                                     [&](const std::string& text) { said.push_back(text); });
  ASSERT_TRUE(setup.passes);
  EXPECT_LE(setup.plan.batch, 12) << "120 samples, at least ten steps per epoch";
  EXPECT_GE(setup.plan.batch, 2);
  EXPECT_EQ(setup.plan.microbatch, setup.plan.batch);
  EXPECT_DOUBLE_EQ(setup.plan.peak_lr(), 0.1 * static_cast<double>(setup.plan.batch) / 64);
  EXPECT_EQ(setup.plan.notes.at("batch").origin, core::Origin::kMeasured);
  EXPECT_THAT(setup.plan.notes.at("batch").reason, HasSubstr("lr_scale=linear takes the peak learning rate from"));
  EXPECT_THAT(said, Contains(fmt::format("batch={}, {}", setup.plan.batch, setup.plan.notes.at("batch").reason)));
}

TEST_F(PassesTest, BatchNormNeverGetsOneSample) {
  for (const char* batch : {"batch=7", "batch=17", "batch=119"}) {  // 119 leaves a last batch of 1
    const Prepared setup = set_up_with({"model=cnn", batch, "microbatch=auto"});
    EXPECT_GT(train::smallest_pass(setup.plan, 120), 1) << batch;
    for (const memory::Probe& each : setup.passes->found.probes) {
      EXPECT_GE(each.samples, 2);
    }
  }
}

TEST_F(PassesTest, WhatContradictsASearchIsRefused) {
  EXPECT_THAT(complaint([&] { (void)set_up_with({"batch=auto", "microbatch=4"}); }), HasSubstr("remove microbatch=4"));
  EXPECT_THAT(complaint([&] {
                (void)set_up_with({"microbatch=auto", "microbatch_schedule=3:4"});
              }),
              HasSubstr("microbatch_schedule="));
  EXPECT_THAT(complaint([&] {
                Request request = request_with({"model=mlp"});
                request.options = train::Options(tasks::all_task_options());
                request.options.set("batch", "auto");
                request.plan_file = folder_ / "plan.json";
                (void)Job::prepare(request, [](const std::string&) {});
              }),
              HasSubstr("remove batch=auto"));
}

TEST_F(PassesTest, WhatDoesNotFitIsAnErrorWithAdvice) {
  const std::vector<std::string> words = {"model=cnn", "batch=32"};
  std::int64_t limit = 0;
  {
    const Prepared setup = set_up_with(words);
    limit = limit_for(setup, 2, false) - 30'000;
  }
  std::vector<std::string> capped = words;
  capped.push_back(fmt::format("memory_limit={}", limit));
  capped.push_back("microbatch=auto");
  EXPECT_THAT(complaint([&] { (void)set_up_with(capped); }),
              AllOf(HasSubstr("ways to fit: memory_limit= above"), HasSubstr("batch=2 optimizer_in_backward=on"),
                    Not(HasSubstr("recompute="))))
      << "gradients hold more than activations";
}

TEST(RowsRepeated, KeepsEveryLayout) {
  core::Batch batch({}, {7, 8, 9});
  batch.set("x", at::arange(6).reshape({3, 2}));
  batch.set({"boxes", at::arange(4), core::Layout::kRagged, at::tensor({0, 1, 1, 4}, at::kLong)});
  batch.set({"scale", at::arange(5), core::Layout::kPerBatch, {}});
  const core::Batch more = rows_repeated(batch, 8);
  EXPECT_EQ(more.size(), 8);
  EXPECT_EQ(more.indices(), (std::vector<std::int64_t>{7, 8, 9, 7, 8, 9, 7, 8}));
  EXPECT_TRUE(more["scale"].equal(batch["scale"]));
  for (std::int64_t i = 0; i < 8; ++i) {
    const core::Batch row = more.slice(i, i + 1), original = batch.slice(i % 3, i % 3 + 1);
    EXPECT_TRUE(row["x"].equal(original["x"])) << i;
    EXPECT_TRUE(row["boxes"].equal(original["boxes"])) << i;
  }
  EXPECT_EQ(rows_repeated(batch, 2).size(), 2);
  EXPECT_TRUE(rows_repeated(batch, 6)["boxes"].equal(at::cat({batch["boxes"], batch["boxes"]})));
}

}  // namespace
}  // namespace stoker::job
