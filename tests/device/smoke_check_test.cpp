// SPDX-License-Identifier: Apache-2.0
// Every possible mistake in a first batch gives a clear error, and a correct batch gives none.
#include "stoker/device/smoke_check.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker::device {
namespace {

using ::testing::HasSubstr;

const c10::Device kCpu(c10::DeviceType::CPU);
const c10::Device kElsewhere(c10::DeviceType::Meta);

// A model of one weight and one buffer; its input is the image divided by `deviation`.
class Model final : public core::Trainable {
 public:
  Model() {
    parameters_.push_back({"head.weight", at::zeros({10, 3}).requires_grad_(), core::Role::kLinear});
    buffers_.push_back({"bn.running_mean", at::zeros({3})});
  }
  const std::vector<core::Parameter>& parameters() const override { return parameters_; }
  const std::vector<core::NamedTensor>& buffers() const override { return buffers_; }
  core::TensorList inputs(const core::Batch& batch) const override {
    return {batch["image"].to(at::kFloat) / deviation};
  }
  core::TensorList forward_segment(int, core::TensorList inputs) override { return inputs; }
  std::vector<std::string> loss_names() const override { return {}; }
  core::Normalisers normalisers(const core::Batch&) const override { return {}; }
  core::LossTerms loss(const core::TensorList&, const core::Batch&) const override { return {}; }
  std::vector<core::NamedTensor> evaluate(const core::TensorList&, const core::Batch&) const override { return {}; }
  std::vector<core::MetricValue> metrics(const std::vector<core::NamedTensor>&) const override { return {}; }
  void set_training(bool) override {}

  std::vector<core::Parameter> parameters_;
  std::vector<core::NamedTensor> buffers_;
  double deviation = 1;
};

class SmokeCheck : public ::testing::Test {
 protected:
  SmokeCheck() {
    batch.set("image", at::full({3, 4, 4, 3}, 5, at::kByte));
    batch.set("target", at::tensor({0, 9, 4}, at::kLong));
    facts.classes = 10;
    facts.channels = 3;
  }
  // The message of the error of type E. Without such an error the test fails.
  template <typename E>
  std::string error_text() const {
    try {
      check_batch(model, batch, kCpu, facts);
    } catch (const E& error) {
      return error.what();
    }
    ADD_FAILURE() << "there was no error of that type";
    return "";
  }

  Model model;
  core::Batch batch{{}, {40, 41, 42}};
  BatchFacts facts;
};

TEST_F(SmokeCheck, SilentWhenAllIsWell) {
  EXPECT_NO_THROW(check_batch(model, batch, kCpu, facts));
  facts.target = "";  // a task without class targets
  facts.channels = 0;
  batch.set("target", at::zeros({3, 10}));
  EXPECT_NO_THROW(check_batch(model, batch, kCpu, facts));
}

TEST_F(SmokeCheck, ParameterElsewhere) {
  model.parameters_.push_back({"conv.weight", at::zeros({2}, at::device(at::kMeta)), core::Role::kConv});
  EXPECT_THAT(error_text<DeviceError>(),
              HasSubstr("parameter conv.weight is float32 [2] on meta, but the run is on cpu"));
}

TEST_F(SmokeCheck, BufferElsewhere) {
  model.buffers_[0].tensor = at::zeros({3}, at::device(at::kMeta));
  EXPECT_THAT(error_text<DeviceError>(), HasSubstr("buffer bn.running_mean"));
}

TEST_F(SmokeCheck, FieldElsewhere) {
  batch.set("target", at::zeros({3}, at::device(at::kMeta).dtype(at::kLong)));
  EXPECT_THAT(error_text<DeviceError>(), HasSubstr("field \"target\" is int64 [3] on meta, but the model is on cpu"));
}

TEST_F(SmokeCheck, NothingToTrain) {
  model.parameters_[0].tensor.requires_grad_(false);
  EXPECT_THAT(error_text<ConfigError>(), HasSubstr("nothing to train"));
}

TEST_F(SmokeCheck, EmptyBatch) {
  batch = core::Batch({}, {});
  EXPECT_THAT(error_text<DataError>(), HasSubstr("the first batch is empty"));
}

TEST_F(SmokeCheck, WrongChannels) {
  batch.set("image", at::zeros({3, 4, 4, 1}, at::kByte));
  EXPECT_THAT(error_text<ConfigError>(), HasSubstr("takes 3 channels, but \"image\" is uint8 [3, 4, 4, 1]"));
  batch.set("image", at::zeros({3, 3, 4, 4}));
  facts.channel_dim = 1;
  EXPECT_NO_THROW(check_batch(model, batch, kCpu, facts));
}

TEST_F(SmokeCheck, TargetOfAnotherType) {
  batch.set("target", at::zeros({3}));
  EXPECT_THAT(error_text<ConfigError>(),
              HasSubstr("\"target\" is float32 [3] on cpu; the loss needs class indices as int64"));
}

TEST_F(SmokeCheck, TargetOutOfRangeNamesTheSample) {
  batch.set("target", at::tensor({0, 10, 4}, at::kLong));
  EXPECT_THAT(error_text<DataError>(),
              HasSubstr("\"target\" of sample 41 is 10, but the model has 10 classes; expected 0 to 9"));
  batch.set("target", at::tensor({0, 1, -1}, at::kLong));
  EXPECT_THAT(error_text<DataError>(), HasSubstr("of sample 42 is -1"));
  batch.set("target", at::tensor({0, -100, 9}, at::kLong));  // torch's ignore_index: the normalisers would count it
  EXPECT_THAT(error_text<DataError>(), HasSubstr("of sample 41 is -100"));
}

TEST_F(SmokeCheck, UnknownField) {
  facts.target = "label";
  EXPECT_THAT(error_text<DataError>(), HasSubstr("no field \"label\"; the batch has"));
}

TEST_F(SmokeCheck, InputsThatAreNotFinite) {
  model.deviation = 0;
  EXPECT_THAT(error_text<DataError>(),
              HasSubstr("model input 0 (float32 [3, 4, 4, 3] on cpu) contains values that are not finite"));
}

}  // namespace
}  // namespace stoker::device
