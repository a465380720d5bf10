// SPDX-License-Identifier: Apache-2.0
// recompute=auto on real set-ups: the least that fits, with the weights of a run that recomputes nothing, stored and
// repeated, and nothing left behind.
#include "stoker/job/recompute_search.h"

#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "stoker/base/file.h"
#include "stoker/device/backend.h"
#include "stoker/device/host_allocator.h"
#include "stoker/job/job.h"
#include "stoker/job/memory_advice.h"
#include "stoker/job/setup.h"
#include "stoker/job/step_probes.h"
#include "stoker/memory/recompute.h"
#include "stoker/tasks/own_task.h"
#include "support/image_set.h"
#include "support/job_runs.h"
#include "support/toy_trainable.h"

namespace stoker::job {
namespace {

using stoker::testing::complaint;
using stoker::testing::TempFolder;
using ::testing::HasSubstr;
using ::testing::Not;
using Prepared = Setup;  // gtest's fixtures have a member named Setup
using Words = std::vector<std::string>;

const Say kSilent = [](const std::string&) {};

class RecomputeSearchTest : public ::testing::Test {
 protected:
  RecomputeSearchTest() {
    device::install_host_allocator();
    stoker::testing::write_striped_set(folder_, "data/train/", 20);
  }
  ~RecomputeSearchTest() override { device::backend_for(c10::kCPU).limit_memory(c10::kCPU, 0); }

  [[nodiscard]] Request request(const std::string& run, const Words& more) const {
    Words words = {"model=cnn",      "batch=60",          "image_size=24", "device=cpu", "threads=0",      "intra_op=1",
                   "precision=fp32", "layout=contiguous", "val=0",         "steps=3",    "tensorboard=off"};
    words.insert(words.end(), more.begin(), more.end());
    Request request = make_request({}, words);
    request.data = folder_ / "data";
    request.run = (folder_ / run).native();
    return request;
  }
  [[nodiscard]] Prepared prepared(const Words& words) const { return set_up(request("run", words), nullptr, kSilent); }
  // memory_limit= that leaves a pass this share of the way from what it needs with recompute=all to what it needs
  // without.
  [[nodiscard]] std::string limit_between(double share, const Words& words = {}) const {
    const Prepared setup = prepared(words);
    StepProbes probes(setup, false);
    const auto plain = static_cast<double>(probes.probe(60).bytes);
    probes.recompute(memory::parse_recompute("all"));
    const auto all = static_cast<double>(probes.probe(60).bytes);
    EXPECT_LT(all, 0.8 * plain);
    return fmt::format("memory_limit={}", probes.held() + static_cast<std::int64_t>(all + share * (plain - all)));
  }
  [[nodiscard]] static std::string weights(const std::filesystem::path& run) {
    return read_text(run / "checkpoints" / "last" / "weights.safetensors");
  }
  [[nodiscard]] static std::filesystem::path train(Request request) {
    Job job = Job::prepare(std::move(request), kSilent);
    const std::atomic<bool> never = false;
    (void)job.train({}, never);
    return job.run_path();
  }

  TempFolder folder_;
};

const train::Plan::Note& note_of(const train::Plan& plan) { return plan.notes.at("recompute"); }

TEST_F(RecomputeSearchTest, SomeSegmentsAreEnoughAndChangeNoByte) {
  const std::string limit = limit_between(0.5);
  const std::filesystem::path run = train(request("auto", {"recompute=auto", limit}));
  const train::Plan plan = train::plan_from_json(read_text(run / "plan.json"));
  EXPECT_NE(plan.recompute, "none");
  EXPECT_NE(plan.recompute, "all");
  EXPECT_EQ(plan.microbatch, 60);
  EXPECT_EQ(note_of(plan).origin, core::Origin::kMeasured);
  EXPECT_THAT(note_of(plan).reason, HasSubstr("auto: a pass of 60 samples needs about "));
  EXPECT_THAT(note_of(plan).reason, HasSubstr(" are free: recomputing "));
  EXPECT_THAT(note_of(plan).reason, HasSubstr(" % time"));
  EXPECT_THAT(read_text(run / "metrics.jsonl"), Not(HasSubstr("out_of_memory")));
  EXPECT_EQ(weights(run), weights(train(request("plain", {"recompute=none"}))));

  const std::filesystem::path capped = train(request("capped", {"recompute=none", limit}));
  EXPECT_THAT(read_text(capped / "metrics.jsonl"), HasSubstr("out_of_memory")) << "the limit is large enough for none";

  Request repeat = make_request({}, {});
  repeat.data = folder_ / "data";
  repeat.run = (folder_ / "again").native();
  repeat.plan_file = run / "plan.json";
  const std::filesystem::path again = train(std::move(repeat));
  EXPECT_EQ(train::plan_from_json(read_text(again / "plan.json")).recompute, plan.recompute);
  EXPECT_EQ(weights(again), weights(run));
  std::vector<std::string> said;
  const Job resumed = Job::resume(run, {"steps=4"}, [&](const std::string& text) { said.push_back(text); });
  EXPECT_EQ(resumed.plan().recompute, plan.recompute);
  EXPECT_THAT(said, Not(::testing::Contains(HasSubstr("recompute"))));
}

TEST_F(RecomputeSearchTest, LessMemoryTakesMoreTime) {
  std::size_t before = 0;
  for (const double share : {0.9, 0.5, 0.15}) {
    const Prepared setup = prepared({"recompute=auto", limit_between(share)});
    const memory::RecomputePlan plan(*setup.model, memory::parse_recompute(setup.plan.recompute));
    EXPECT_GE(plan.names().size(), before) << share << ": " << setup.plan.recompute;
    before = plan.names().size();
  }
}

TEST_F(RecomputeSearchTest, WhatFitsIsNotRecomputed) {
  for (const Words& more : {Words{}, Words{limit_between(1.1)}}) {
    Words words = more;
    words.emplace_back("recompute=auto");
    const Prepared setup = prepared(words);
    EXPECT_EQ(setup.plan.recompute, "none");
    EXPECT_EQ(note_of(setup.plan).origin, core::Origin::kMeasured);
    EXPECT_THAT(note_of(setup.plan).reason, HasSubstr("so nothing is recomputed"));
  }
}

TEST_F(RecomputeSearchTest, WhereAllIsNotEnoughPassesShrink) {
  const std::filesystem::path run = train(request("run", {"recompute=auto", limit_between(-0.12)}));
  const train::Plan plan = train::plan_from_json(read_text(run / "plan.json"));
  EXPECT_EQ(plan.recompute, "all");
  EXPECT_EQ(plan.microbatch, 60);
  EXPECT_THAT(note_of(plan).reason, HasSubstr("smaller passes follow"));
  EXPECT_THAT(read_text(run / "metrics.jsonl"), HasSubstr("out_of_memory"));
}

// Precision, layout and threads are chosen under the same limit, on fewer samples.
TEST_F(RecomputeSearchTest, TrialsThatRunOutOfMemoryKeepTheMicrobatch) {
  const Prepared setup = prepared({"recompute=auto", "precision=auto", "layout=auto", limit_between(0.3)});
  EXPECT_EQ(setup.plan.microbatch, 60);
  EXPECT_EQ(note_of(setup.plan).origin, core::Origin::kMeasured);
}

std::string values_of(const tasks::Model& model) {
  std::string result;
  const auto add = [&](const std::string& name, const at::Tensor& tensor) {
    const at::Tensor flat = tensor.detach().contiguous();
    result += name + std::string(static_cast<const char*>(flat.const_data_ptr()), flat.nbytes());
  };
  for (const core::Parameter& each : model.parameters()) {
    add(each.name, each.tensor);
    result += each.tensor.grad().defined() ? " a gradient" : "";
  }
  for (const core::NamedTensor& each : model.buffers()) {
    add(each.name, each.tensor);
  }
  return result;
}

TEST_F(RecomputeSearchTest, LeavesNothingBehind) {
  Prepared setup = prepared({limit_between(0.5), "optimizer=adamw"});
  const std::string before = values_of(*setup.model);
  const at::Tensor generator = at::globalContext().defaultGenerator(c10::kCPU).get_state();
  const std::int64_t held = device::host_allocated(), cap = device::host_cap();
  choose_recomputation(setup);
  EXPECT_NE(setup.plan.recompute, "none");
  EXPECT_TRUE(values_of(*setup.model) == before);
  EXPECT_TRUE(at::globalContext().defaultGenerator(c10::kCPU).get_state().equal(generator));
  EXPECT_EQ(device::host_allocated(), held);
  EXPECT_EQ(device::host_cap(), cap);
}

// One segment with two parts.
class OneSegment final : public stoker::testing::ToyTrainable {
 public:
  OneSegment() : ToyTrainable(at::kFloat) {}
  [[nodiscard]] std::vector<std::string> inner_segments(int) const override { return {"hidden", "head"}; }
  [[nodiscard]] core::TensorList forward_inner(int, int inner, core::TensorList values) override {
    return inner == 0 ? std::move(values) : forward_segment(0, std::move(values));
  }
};

Prepared one_segment(const std::string& recompute) {
  static const bool added = [] {
    tasks::OwnTask own;
    own.name = "one_segment";
    own.model = [](std::uint64_t) { return std::make_unique<OneSegment>(); };
    own.sample = [](tasks::Split, std::int64_t index, CounterRng) {
      const core::Batch row = stoker::testing::toy_batch(1, at::kFloat, index);
      return std::vector<core::NamedTensor>{{"x", row["x"][0]}, {"y", row["y"][0]}, {"mask", row["mask"][0]}};
    };
    own.train_samples = own.val_samples = own.test_samples = 20;
    own.defaults = {{"lr", "0.02"}, {"schedule", "constant"}, {"warmup", "0"}};
    tasks::add_own_task(std::move(own));
    return true;
  }();
  EXPECT_TRUE(added);
  Request request = make_request({}, {"task=one_segment", "data=rows", "device=cpu", "batch=8", "precision=fp32",
                                      "intra_op=1", "threads=0", recompute});
  return set_up(request, nullptr, kSilent);
}

TEST_F(RecomputeSearchTest, OneSegmentLeavesNoChoice) {
  const Prepared setup = one_segment("recompute=auto");
  EXPECT_EQ(setup.plan.recompute, "none");
  EXPECT_THAT(note_of(setup.plan).reason, HasSubstr("one segment"));
  EXPECT_THAT(setup.notes, Not(::testing::Contains(HasSubstr("recompute="))));
  EXPECT_THAT(one_segment("recompute=all").notes,
              ::testing::Contains(HasSubstr("recompute=all: the model is one segment")));
  EXPECT_THAT(one_segment("recompute=head").notes, Not(::testing::Contains(HasSubstr("recompute="))));
}

TEST_F(RecomputeSearchTest, WhatContradictsIsRefused) {
  EXPECT_THAT(complaint([&] {
                (void)prepared({"recompute=auto", "microbatch=auto"});
              }),
              HasSubstr("remove recompute=auto"));
  EXPECT_THAT(complaint([&] {
                (void)prepared({"recompute=auto", "microbatch_schedule=2:8"});
              }),
              HasSubstr("remove one of them"));
}

TEST_F(RecomputeSearchTest, AdviceNamesIt) {
  Prepared setup = prepared({});
  EXPECT_THAT(memory_advice(setup, held_by_run(setup)), HasSubstr("recompute=auto"));
  setup.plan.recompute = "stem";
  EXPECT_THAT(memory_advice(setup, held_by_run(setup)), HasSubstr("recompute=all"));
  setup.plan.recompute = "all";
  EXPECT_THAT(memory_advice(setup, held_by_run(setup)), Not(HasSubstr("recompute=")));
}

}  // namespace
}  // namespace stoker::job
