// SPDX-License-Identifier: Apache-2.0
// Evaluations of a split share one loader, and an interrupted evaluation does not affect later ones.
#include "stoker/job/split_evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "support/image_set.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;

class Deaf final : public core::EventEmitter {
 public:
  void emit(core::Event) override {}
};

std::set<std::string> threads_now() {
  std::set<std::string> ids;
  for (const auto& entry : fs::directory_iterator("/proc/self/task")) {
    ids.insert(entry.path().filename());
  }
  return ids;
}

class SplitEvaluationTest : public ::testing::Test {
 protected:
  SplitEvaluationTest() {
    stoker::testing::write_striped_set(folder_, "data/train/", 6);
    stoker::testing::write_striped_set(folder_, "data/val/", 8, 100);
    Request request = make_request({}, {"epochs=1", "batch=4", "threads=2", "intra_op=1", "precision=bf16",
                                        "layout=channels_last", "model=cnn", "device=cpu"});
    request.data = folder_ / "data";
    setup_ = set_up(request, nullptr, [](const std::string&) {});
  }
  // Returns the metrics, and adds to threads all threads that were seen after any batch.
  std::vector<core::MetricValue> evaluate(SplitEvaluation& evaluation, std::set<std::string>* threads,
                                          bool interrupt = false) {
    return evaluation.run({events_, {0, "val", 0, 24}, [&, threads] {
                             if (threads != nullptr) {
                               threads->merge(threads_now());
                             }
                             return interrupt;
                           }});
  }

  stoker::testing::TempFolder folder_;
  Deaf events_;
  job::Setup setup_;
};

void expect_equal(const std::vector<core::MetricValue>& a, const std::vector<core::MetricValue>& b) {
  ASSERT_FALSE(a.empty());
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].value, b[i].value) << a[i].name;
  }
}

TEST_F(SplitEvaluationTest, TheLoaderOfAnEvaluationStaysForTheNext) {
  Session session(setup_);
  SplitEvaluation evaluation(setup_, session, tasks::Split::kVal);
  const std::set<std::string> own = threads_now();
  std::set<std::string> first, second;
  const auto before = evaluate(evaluation, &first);
  const auto after = evaluate(evaluation, &second);
  EXPECT_GE(first.size(), own.size() + 2) << "no loader threads were seen";
  EXPECT_THAT(first, ::testing::IsSupersetOf(second)) << "the second evaluation started new threads";
  expect_equal(before, after);
}

TEST_F(SplitEvaluationTest, AnEvaluationThatIsBrokenOffSpoilsNoOther) {
  Session session(setup_);
  SplitEvaluation evaluation(setup_, session, tasks::Split::kVal);
  const auto before = evaluate(evaluation, nullptr);
  EXPECT_TRUE(evaluate(evaluation, nullptr, /*interrupt=*/true).empty());
  expect_equal(before, evaluate(evaluation, nullptr));
}

}  // namespace
}  // namespace stoker::job
