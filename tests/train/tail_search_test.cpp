// SPDX-License-Identifier: Apache-2.0
// Whether steps and evaluations run with cuDNN's search on. It is a switch of the process, so a CPU can show it, too.
#include <ATen/Context.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <atomic>

#include "stoker/precision/policy.h"
#include "stoker/precision/process_switches.h"
#include "stoker/train/evaluate.h"
#include "stoker/train/step.h"
#include "support/toy_trainable.h"

namespace stoker::train {
namespace {

using testing::toy_batch;
using testing::ToyTrainable;

// How many operators ran with the search off.
class SearchSeen {
 public:
  SearchSeen() {
    precision::apply({.cudnn_benchmark = true});
    off_ = 0;
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback([](const at::RecordFunction&) {
                                      off_ += !at::globalContext().benchmarkCuDNN();
                                      return std::unique_ptr<at::ObserverContext>();
                                    }).scopes({at::RecordScope::FUNCTION}));
  }
  ~SearchSeen() { at::removeCallback(handle_); }
  SearchSeen(const SearchSeen&) = delete;
  SearchSeen& operator=(const SearchSeen&) = delete;
  // Whether there were any since the last call.
  static bool off() { return off_.exchange(0) > 0; }

 private:
  const precision::ProcessSwitches before_;
  at::CallbackHandle handle_;
  static inline std::atomic<int> off_ = 0;
};

TEST(TailSearch, AStepSearchesForWholeBatchesAlone) {
  ToyTrainable model;
  Step step(model, {.name = "sgd"});
  const core::Batch whole = toy_batch(12), tail = toy_batch(5);
  const SearchSeen seen;
  step.compute(whole, 0);
  EXPECT_FALSE(SearchSeen::off());
  step.compute(tail, 1);
  EXPECT_TRUE(SearchSeen::off());
  step.compute(whole, 2);
  EXPECT_FALSE(SearchSeen::off());
}

class TwoBatches final : public core::BatchSource {
 public:
  std::optional<core::Batch> next() override {
    ++given_;
    return given_ > 2 ? std::nullopt : std::optional(toy_batch(given_ == 1 ? 12 : 5));
  }

 private:
  int given_ = 0;
};

TEST(TailSearch, AnEvaluationToo) {
  ToyTrainable model;
  TwoBatches source;
  const SearchSeen seen;
  const auto look = [](const core::TensorList&, const core::Batch& batch) {
    EXPECT_EQ(SearchSeen::off(), batch.size() == 5);
  };
  (void)evaluate(model, source, at::kFloat, {.visit = look});
}

}  // namespace
}  // namespace stoker::train
