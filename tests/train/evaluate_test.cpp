// SPDX-License-Identifier: Apache-2.0
// An evaluation casts each weight once, and its totals are those of its batches.
#include "stoker/train/evaluate.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "support/toy_trainable.h"

namespace stoker::train {
namespace {

using stoker::testing::toy_batch;
using stoker::testing::ToyTrainable;

class Batches final : public core::BatchSource {
 public:
  explicit Batches(int count) : count_(count) {}
  std::optional<core::Batch> next() override {
    return given_ == count_ ? std::nullopt : std::optional(toy_batch(4, at::kFloat, 4 * given_++));
  }

 private:
  int count_, given_ = 0;
};

// Counts casts of tensors that require a gradient, which only weights do, during its lifetime.
class WeightCasts {
 public:
  WeightCasts() {
    count() = 0;
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback([](const at::RecordFunction& call) {
                                      if (std::string_view(call.name()) == "aten::_to_copy" &&
                                          call.inputs()[0].toTensor().requires_grad()) {
                                        ++count();
                                      }
                                      return std::unique_ptr<at::ObserverContext>();
                                    })
                                        .needsInputs(true)
                                        .scopes({at::RecordScope::FUNCTION}));
  }
  ~WeightCasts() { at::removeCallback(handle_); }
  WeightCasts(const WeightCasts&) = delete;
  WeightCasts& operator=(const WeightCasts&) = delete;
  static int& count() {
    static int casts = 0;
    return casts;
  }

 private:
  at::CallbackHandle handle_;
};

TEST(Evaluate, CastsEachWeightOnce) {
  ToyTrainable model(at::kFloat);
  Batches source(6);
  const WeightCasts casts;
  (void)evaluate(model, source, at::kBFloat16);
  EXPECT_EQ(WeightCasts::count(), static_cast<int>(model.parameters().size()));
}

TEST(Evaluate, LeavesNoCastBehind) {
  ToyTrainable model(at::kFloat);
  Batches before(1), after(1);
  (void)evaluate(model, before, at::kBFloat16);
  {
    const at::NoGradGuard no_grad;
    at::Tensor(model.parameters().back().tensor).fill_(0).select(0, 2).fill_(100);
  }
  const auto totals = evaluate(model, after, at::kBFloat16);
  EXPECT_EQ(totals[0].tensor.item<std::int64_t>(), toy_batch(4)["y"].eq(2).sum().item<std::int64_t>());
}

TEST(Evaluate, AddsUpBatchesAndBuildsNoGraph) {
  ToyTrainable model(at::kFloat);
  std::int64_t right = 0;
  Batches source(5);
  const auto look = [&](const core::TensorList& outputs, const core::Batch& batch) {
    EXPECT_FALSE(outputs[0].requires_grad());
    EXPECT_EQ(batch["x"].scalar_type(), at::kFloat);
    right += outputs[0].argmax(1).eq(batch["y"]).sum().item<std::int64_t>();
  };
  const auto totals = evaluate(model, source, at::kFloat, {.visit = look});
  EXPECT_EQ(totals[0].tensor.item<std::int64_t>(), right);
  EXPECT_EQ(totals[1].tensor.item<std::int64_t>(), 20);
  Batches none(0);
  EXPECT_THROW((void)evaluate(model, none, at::kFloat), DataError);
}

// Hands a parameter to its metrics, as a language model hands over its table, and may turn gradients on.
class WithATable final : public ToyTrainable {
 public:
  explicit WithATable(bool gradients) : ToyTrainable(at::kFloat), gradients_(gradients) {}
  [[nodiscard]] core::TensorList forward_segment(int segment, core::TensorList inputs) override {
    const at::AutoGradMode mode(gradients_);
    core::TensorList outputs = ToyTrainable::forward_segment(segment, std::move(inputs));
    if (segment + 1 == segments()) {
      outputs.push_back(parameters().front().tensor);
    }
    return outputs;
  }

 private:
  bool gradients_;
};

TEST(Evaluate, AParameterAmongTheOutputsIsNoGraph) {
  for (const bool gradients : {false, true}) {
    WithATable model(gradients);
    Batches source(2);
    int told = 0;
    (void)evaluate(model, source, at::kFloat, {.with_gradients = [&] { ++told; }});
    EXPECT_EQ(told, gradients ? 2 : 0);
  }
}

}  // namespace
}  // namespace stoker::train
