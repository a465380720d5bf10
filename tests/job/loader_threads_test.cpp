// SPDX-License-Identifier: Apache-2.0
// How many loader threads a run requests, and its finding at the end about late data. The tests use a kind of task that
// records each batch request and can slow its batches down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "stoker/device/cpu_quota.h"
#include "stoker/job/job.h"
#include "stoker/job/opened_data.h"
#include "stoker/job/setup.h"
#include "stoker/tasks/derived_task.h"
#include "support/image_set.h"

namespace stoker::job {
namespace {

using stoker::testing::TempFolder;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::StartsWith;
using Opened = Setup;  // gtest's fixtures have a member named Setup

bool registered = false;                       // the kind of task is registered
std::optional<tasks::BatchRequest> asked_for;  // by the last training source
std::chrono::milliseconds each_batch{0};       // the added time per batch

class SlowSource final : public core::BatchSource {
 public:
  explicit SlowSource(std::unique_ptr<core::BatchSource> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] std::optional<core::Batch> next() override {
    std::this_thread::sleep_for(each_batch);
    return inner_->next();
  }
  [[nodiscard]] std::optional<core::SourceFigures> figures() const override { return inner_->figures(); }

 private:
  std::unique_ptr<core::BatchSource> inner_;
};

class LoaderThreadsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (std::exchange(registered, true)) {  // --gtest_repeat
      return;
    }
    tasks::TaskChanges changes;
    changes.training_batches = [](std::unique_ptr<core::BatchSource> batches, const tasks::BatchRequest& request) {
      asked_for = request;
      return std::make_unique<SlowSource>(std::move(batches));
    };
    tasks::derive_task("slow_images", "image_classification", changes);
  }
  LoaderThreadsTest() { stoker::testing::write_striped_set(folder_, "data/train/", 8); }

  [[nodiscard]] Request request(std::vector<std::string> words, const std::string& toml = "") const {
    folder_.write("config.toml", toml);
    words.insert(words.end(),
                 {"task=slow_images", "device=cpu", "model=mlp", "batch=8", "intra_op=1", "precision=fp32", "val=0"});
    Request result = make_request(folder_ / "config.toml", words);
    result.data = folder_ / "data";
    result.run = (folder_ / "run").native();
    return result;
  }
  // The request of a run with this plan.
  static tasks::BatchRequest request_of(const Opened& setup) {
    asked_for.reset();
    (void)setup.training_source({});
    return asked_for.value();
  }

  TempFolder folder_;
};

const Say kSilent = [](const std::string&) {};

Opened opened(const Request& request) {
  OpenedData data = open_data(request, nullptr, kSilent);
  Opened setup;
  setup.device = data.device;
  setup.task = settle(data);
  setup.plan = std::move(data.plan);
  return setup;
}

TEST_F(LoaderThreadsTest, ThoseThatWereAskedForStay) {
  for (const auto& [words, toml] : {std::pair{std::vector<std::string>{"threads=2"}, ""}, {{}, "threads = 2\n"}}) {
    const tasks::BatchRequest asked = request_of(opened(request(words, toml)));
    EXPECT_EQ(asked.threads, 2);
    EXPECT_EQ(asked.cores, 0) << "nothing is searched for";
  }
}

TEST_F(LoaderThreadsTest, ThoseThatWereMeasuredAreWhereASearchBegins) {
  Opened setup = opened(request({}));
  setup.plan.notes["threads"].origin = core::Origin::kMeasured;
  setup.plan.threads = 1;
  const int left = device::cpu_quota().cores - static_cast<int>(setup.plan.intra_op);
  EXPECT_EQ(request_of(setup).threads, 1);
  EXPECT_EQ(request_of(setup).cores, std::max(left, 1));
  setup.plan.threads = left + 2;  // more than the cores that are left
  EXPECT_EQ(request_of(setup).cores, left + 2);
  setup.plan.threads = 0;  // the step's own threads load
  setup.plan.intra_op = 3;
  EXPECT_EQ(request_of(setup).cores, 3);
}

class Findings final : public core::EventSink {
 public:
  explicit Findings(std::vector<std::string>& all) : all_(all) {}
  void on(const core::Event& event) override {
    if (const auto* finding = std::get_if<core::Finding>(&event)) {
      all_.push_back(finding->text);
    }
  }

 private:
  std::vector<std::string>& all_;
};

TEST_F(LoaderThreadsTest, ARunSaysAtItsEndThatDataCameLate) {
  std::vector<std::string> findings;
  std::vector<std::unique_ptr<core::EventSink>> sinks;
  sinks.push_back(std::make_unique<Findings>(findings));
  each_batch = std::chrono::milliseconds(150);
  Job job = Job::prepare(request({"threads=0", "epochs=1"}), kSilent);
  const std::atomic<bool> stop = false;
  (void)job.train(std::move(sinks), stop);
  each_batch = {};
  // "sometimes" if a busy disk makes the checkpoint take even longer.
  EXPECT_THAT(findings, Contains(AnyOf(StartsWith("data-starved "), StartsWith("data is sometimes late"))));
}

}  // namespace
}  // namespace stoker::job
