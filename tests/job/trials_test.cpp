// SPDX-License-Identifier: Apache-2.0
// Trials on the real model: they leave it unchanged, and each candidate runs as described.
#include "stoker/job/trials.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "stoker/job/setup.h"
#include "support/dispatch_counter.h"
#include "support/image_set.h"

namespace stoker::job {
namespace {

using stoker::testing::TempFolder;
using stoker::testing::write_striped_set;
using Prepared = Setup;  // gtest's fixtures have a member named Setup

class TrialsTest : public ::testing::Test {
 protected:
  TrialsTest() { write_striped_set(folder_, "data/train/", 8); }

  // All values are given, so that nothing is measured.
  [[nodiscard]] Prepared set_up_with(std::vector<std::string> words) const {
    words.insert(words.end(), {"device=cpu", "threads=0", "intra_op=1", "precision=fp32", "val=0"});
    Request request = make_request({}, words);
    request.data = folder_ / "data";
    request.run = (folder_ / "run").native();
    return set_up(request, nullptr, [](const std::string&) {});
  }

  TempFolder folder_;
};

std::string bytes(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().contiguous();
  return {static_cast<const char*>(flat.const_data_ptr()), flat.nbytes()};
}

// Values and strides of all tensors of a model.
std::vector<std::string> all_of(const tasks::Model& model) {
  std::vector<std::string> result;
  const auto add = [&](const std::string& name, const at::Tensor& tensor) {
    result.push_back(name + " " + ::testing::PrintToString(tensor.strides().vec()) + bytes(tensor));
  };
  for (const core::Parameter& each : model.parameters()) {
    add(each.name, each.tensor);
    result.push_back(each.tensor.grad().defined() ? "a gradient" : "none");
  }
  for (const core::NamedTensor& each : model.buffers()) {
    add(each.name, each.tensor);
  }
  return result;
}

TEST_F(TrialsTest, LeaveTheModelAndTheProcessAsTheyWere) {
  for (const char* layout : {"layout=channels_last", "layout=contiguous"}) {
    const std::vector<std::string> words = {"model=resnet18", "batch=4", layout};  // 3 x 3 and 1 x 1 kernels
    Prepared setup = set_up_with(words);
    const std::vector<std::string> before = all_of(*setup.model);
    const int threads = at::get_num_threads();
    StepTrials trials(setup);
    (void)trials.layouts_can_be_tried();
    const auto seconds = trials.step_seconds_per_sample(
        {{"fp32", "channels_last", 2}, {"bf16", "contiguous", 1}, {"fp32", "contiguous", 2}});
    EXPECT_EQ(seconds.size(), 3U);
    EXPECT_THAT(seconds, ::testing::Each(::testing::Gt(0)));
    EXPECT_TRUE(all_of(*setup.model) == before) << layout;
    EXPECT_EQ(at::get_num_threads(), threads);
    EXPECT_TRUE(all_of(*set_up_with(words).model) == before) << "two set-ups differ, so the comparison proves nothing";
  }
}

// As on a GPU.
TEST_F(TrialsTest, WholeStepsLeaveTheModelAsItWas) {
  Prepared setup = set_up_with({"model=cnn", "batch=8", "optimizer=adamw"});
  setup.model->parameters().front().tensor.detach().flatten()[0].fill_(-0.0);  // a step with rate 0 turns it into +0
  const std::vector<std::string> before = all_of(*setup.model);
  StepTrials trials(setup, {}, /*whole_steps=*/true);
  (void)trials.step_seconds_per_sample({{"fp32", "channels_last", 1}, {"bf16", "channels_last", 2}});
  EXPECT_TRUE(all_of(*setup.model) == before);
}

TEST_F(TrialsTest, StepsWithoutACommitMakeNoMoments) {
  Prepared setup = set_up_with({"model=mlp", "batch=8", "optimizer=adamw"});
  StepTrials trials(setup);
  const testing::DispatchCounter counter;
  (void)trials.step_seconds_per_sample({{"fp32", "channels_last", 1}});
  EXPECT_GT(counter.calls("aten::linear"), 0);
  EXPECT_EQ(counter.calls("aten::zeros_like"), 0);
}

TEST_F(TrialsTest, ThatTheyTakeLongIsSaidOnce) {
  Prepared setup = set_up_with({"model=mlp", "batch=8"});
  int notices = 0;
  StepTrials trials(setup, [&] { ++notices; });
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  (void)trials.step_seconds_per_sample({{"fp32", "channels_last", 1}, {"fp32", "channels_last", 2}});
  EXPECT_EQ(notices, 1);
}

TEST_F(TrialsTest, OnlyWholeMicrobatchesOfConvolutionsTellALayout) {
  Prepared cnn = set_up_with({"model=cnn", "batch=8", "layout=channels_last"});
  EXPECT_TRUE(StepTrials(cnn).layouts_can_be_tried());
  Prepared mlp = set_up_with({"model=mlp", "batch=8", "layout=channels_last"});
  EXPECT_FALSE(StepTrials(mlp).layouts_can_be_tried());
}

}  // namespace
}  // namespace stoker::job
