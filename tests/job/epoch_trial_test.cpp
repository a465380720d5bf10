// SPDX-License-Identifier: Apache-2.0
// The trials behind time=: they time every part of an epoch, leave the model as it was, and choose a width.
#include "stoker/job/epoch_trial.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "stoker/job/setup.h"
#include "stoker/job/wider_model.h"
#include "stoker/tasks/derived_task.h"
#include "stoker/tasks/image/classifier.h"
#include "support/image_set.h"

namespace stoker::job {
namespace {

using stoker::testing::TempFolder;
using stoker::testing::write_striped_set;
using Prepared = Setup;  // gtest's fixtures have a member named Setup

std::string bytes(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().contiguous();
  return {static_cast<const char*>(flat.const_data_ptr()), flat.nbytes()};
}

std::vector<std::string> all_of(const tasks::Model& model) {
  std::vector<std::string> result;
  for (const core::Parameter& each : model.parameters()) {
    result.push_back(bytes(each.tensor));
    result.emplace_back(each.tensor.grad().defined() ? "a gradient" : "none");
  }
  for (const core::NamedTensor& each : model.buffers()) {
    result.push_back(bytes(each.tensor));
  }
  return result;
}

Prepared set_up_in(const TempFolder& folder, std::vector<std::string> words) {
  words.insert(words.begin(), {"device=cpu", "batch=8", "threads=0", "intra_op=1", "precision=fp32"});
  Request request = make_request({}, words);
  request.data = folder / "data";
  return set_up(request, nullptr, [](const std::string&) {});
}

TEST(EpochTrial, LeavesTheModelAsItWas) {
  const TempFolder folder;
  write_striped_set(folder, "data/train/", 8);
  write_striped_set(folder, "data/val/", 3, 100);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"model=cnn"},
                                                {"model=mlp", "optimizer=sgd", "optimizer.momentum=0"},
                                                {"model=mlp", "optimizer=adam", "weight_decay=0.1"},
                                                {"model=mlp", "optimizer=adamw", "weight_decay=0.1"},
                                                {"model=cnn", "precision=bf16", "half_weights=on"}}) {
    const Prepared setup = set_up_in(folder, words);
    for (const core::Parameter& each : setup.model->parameters()) {
      each.tensor.detach().select(0, 0).fill_(-0.0);  // adding 0 would turn it into +0
    }
    const std::vector<std::string> before = all_of(*setup.model);
    const train::EpochTime time = time_epoch(setup);
    EXPECT_GT(time.first, 0);
    EXPECT_GT(time.later, 0);
    EXPECT_GT(time.evaluation, 0);
    EXPECT_TRUE(all_of(*setup.model) == before) << words.front();
  }
}

TEST(EpochTrial, ThePlanHasTheEpochsThatFitUnlessTheyAreAskedFor) {
  const TempFolder folder;
  write_striped_set(folder, "data/", 8);  // val is split off from it
  const train::Plan usual = set_up_in(folder, {"model=mlp"}).plan;
  const train::Plan day = set_up_in(folder, {"model=mlp", "time=24h"}).plan;
  EXPECT_EQ(day.epochs, train::kMostTimes * usual.epochs) << "24 samples do not take a day";
  EXPECT_EQ(day.notes.find("epochs")->second.origin, core::Origin::kMeasured);
  const train::Plan asked = set_up_in(folder, {"model=mlp", "time=24h", "epochs=3"}).plan;
  EXPECT_EQ(asked.epochs, 3);
  EXPECT_EQ(asked.notes.find("epochs")->second.origin, core::Origin::kCommandLine);
}

TEST(EpochTrial, WhereThereIsTimeTheDefaultNetworkGetsWider) {
  const TempFolder folder;
  write_striped_set(folder, "data/", 8);
  const train::Plan enough = set_up_in(folder, {"time=5m"}).plan;
  EXPECT_EQ(enough.model, "cnn64");
  const train::Plan::Note& note = enough.notes.find("model")->second;
  EXPECT_EQ(note.origin, core::Origin::kMeasured);
  EXPECT_NE(note.reason.find("time=300s allows"), std::string::npos) << note.reason;
  EXPECT_EQ(set_up_in(folder, {"time=5m", "model=cnn"}).plan.model, "cnn") << "it was asked for";
  EXPECT_EQ(set_up_in(folder, {"time=5m", "epochs=2"}).plan.model, "cnn") << "time= does not decide";
  EXPECT_EQ(set_up_in(folder, {"time=0.001s"}).plan.model, "cnn") << "no time for it";
}

// Networks wider than cnn take 0.2 s more per forward pass than their FLOPs predict.
class SlowWhenWide final : public tasks::ImageClassifier {
 public:
  explicit SlowWhenWide(ImageClassifier&& plain) : ImageClassifier(std::move(plain)) {}
  [[nodiscard]] core::TensorList forward_segment(int segment, core::TensorList inputs) override {
    if (segment == 0 && network().parameters().front().tensor.size(0) > 32) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    return ImageClassifier::forward_segment(segment, std::move(inputs));
  }
};

TEST(WiderModel, IsTheWidestThatADozenEpochsFit) {
  const std::vector<std::string> known{"mlp", "cnn", "cnn48", "cnn64"};
  const auto flops = [](const std::string& model) { return model == "cnn" ? 1.0 : model == "cnn48" ? 2.0 : 3.5; };
  const auto chosen = [&](double epochs) { return widest_that_fits("cnn", epochs, known, flops); };
  EXPECT_EQ(chosen(23.9), "");
  EXPECT_EQ(chosen(24), "cnn48");
  EXPECT_EQ(chosen(41.9), "cnn48");
  EXPECT_EQ(chosen(42), "cnn64");
  EXPECT_EQ(chosen(0.1), "");
  EXPECT_EQ(widest_that_fits("cnn", 1e6, {"cnn"}, flops), "") << "the task has no other model";
  EXPECT_EQ(widest_that_fits("mlp", 1e6, known, flops), "") << "mlp has no wider version";
  EXPECT_EQ(widest_that_fits("cnn", 1e6, known, [](auto&) { return 0.0; }), "") << "its FLOPs are unknown";
}

TEST(WiderModel, ItsOwnStepsDecide) {
  tasks::derive_task("slow_when_wide", "image_classification", {.model = [](std::unique_ptr<tasks::Model> model) {
                       return std::make_unique<SlowWhenWide>(std::move(dynamic_cast<tasks::ImageClassifier&>(*model)));
                     }});
  const TempFolder folder;
  write_striped_set(folder, "data/", 8);
  // An epoch has 3 steps and sleeps for at least 0.6 s: 4.6 s are enough for at most 7 epochs.
  const Prepared setup = set_up_in(folder, {"task=slow_when_wide", "time=5s"});
  EXPECT_EQ(setup.plan.model, "cnn");
  EXPECT_EQ(setup.model->parameters().front().tensor.size(0), 32);
  EXPECT_EQ(setup.plan.notes.find("model")->second.origin, core::Origin::kDefault);
}

}  // namespace
}  // namespace stoker::job
