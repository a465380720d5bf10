// SPDX-License-Identifier: Apache-2.0
// Whole runs with a planted leak of each kind: the finding names what stays, where it was made and what to do. Clean
// runs of 500 steps raise none, and leave a record whose categories sum to the peak.
#include "stoker/job/memory_watch.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "stoker/base/file.h"
#include "stoker/job/job.h"
#include "stoker/memory/mark.h"
#include "stoker/tasks/own_task.h"
#include "support/temp_folder.h"
#include "support/toy_trainable.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
using stoker::testing::TempFolder;
using stoker::testing::toy_batch;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kSamples = 40;
const std::atomic<bool> kNever = false;

// What the model of a test does in its loss beside the loss; the source, with each batch.
struct Planted {
  std::function<void(const at::Tensor& outputs)> in_loss = [](const at::Tensor&) {};
  std::function<void(const at::Tensor& outputs)> in_evaluation = [](const at::Tensor&) {};
  bool gradients = false;  // on in forward()
  std::function<void(const core::Batch&)> in_source = [](const core::Batch&) {};
};
Planted& planted() {
  static Planted now;
  return now;
}

class Leaky final : public stoker::testing::ToyTrainable {
 public:
  Leaky() : ToyTrainable(at::kFloat) {}
  [[nodiscard]] core::LossTerms loss(const core::TensorList& outputs, const core::Batch& batch) const override {
    planted().in_loss(outputs[0]);
    memory::mark("in the loss");
    return ToyTrainable::loss(outputs, batch);
  }
  [[nodiscard]] core::TensorList forward_segment(int segment, core::TensorList inputs) override {
    const at::AutoGradMode mode(planted().gradients || at::GradMode::is_enabled());
    return ToyTrainable::forward_segment(segment, std::move(inputs));
  }
  [[nodiscard]] std::vector<core::NamedTensor> evaluate(const core::TensorList& outputs,
                                                        const core::Batch& batch) const override {
    planted().in_evaluation(outputs[0]);
    return ToyTrainable::evaluate(outputs, batch);
  }
};

class Rows final : public core::BatchSource {
 public:
  explicit Rows(const tasks::BatchRequest& request) : batch_(request.batch), at_(request.start) {}
  [[nodiscard]] std::optional<core::Batch> next() override {
    const std::int64_t first = at_.step * batch_, rows = std::min(batch_, kSamples - first);
    if (rows <= 0) {
      at_ = {at_.epoch + 1, 0};
      return std::nullopt;
    }
    const core::Batch made = toy_batch(rows, at::kFloat, first);
    core::Batch batch(at_, made.indices());
    for (const char* field : {"x", "y", "mask"}) {
      batch.set(field, made[field]);
    }
    planted().in_source(batch);
    ++at_.step;
    return batch;
  }

 private:
  std::int64_t batch_;
  core::Position at_;
};

void add_task() {
  static const bool added = [] {
    tasks::OwnTask own;
    own.name = "leaky";
    own.model = [](std::uint64_t) { return std::make_unique<Leaky>(); };
    own.training = [](const tasks::BatchRequest& request) { return std::make_unique<Rows>(request); };
    own.evaluation = [](tasks::Split, const tasks::BatchRequest& request) { return std::make_unique<Rows>(request); };
    own.train_samples = own.val_samples = kSamples;
    own.defaults = {{"lr", "0.02"}, {"schedule", "constant"}, {"warmup", "0"}};
    tasks::add_own_task(own);
    return true;
  }();
  EXPECT_TRUE(added);
}

class Findings final : public core::EventSink {
 public:
  explicit Findings(std::vector<std::string>& texts) : texts_(texts) {}
  void on(const core::Event& event) override {
    const auto* finding = std::get_if<core::Finding>(&event);
    if (finding != nullptr && (finding->text.find(" grows by ") != std::string::npos ||
                               finding->text.find("gradient") != std::string::npos)) {
      texts_.push_back(finding->text);
    }
  }

 private:
  std::vector<std::string>& texts_;
};

// Trains with the leak planted; the findings of growth.
std::vector<std::string> run(const TempFolder& folder, const Planted& leak, const std::vector<std::string>& words) {
  add_task();
  std::vector<std::string> all{"data=rows",  "task=leaky", "device=cpu", "batch=8",      "precision=fp32",
                               "intra_op=1", "threads=0",  "ema=0.9",    "early_stop=0", "save_every=100"};
  all.insert(all.end(), words.begin(), words.end());
  Request request = make_request({}, all);
  request.run = (folder / "run").native();
  Job job = Job::prepare(request, [](const std::string&) {});
  planted() = leak;
  std::vector<std::string> texts;
  std::vector<std::unique_ptr<core::EventSink>> sinks;
  sinks.push_back(std::make_unique<Findings>(texts));
  (void)job.train(std::move(sinks), kNever);
  planted() = {};
  return texts;
}

nlohmann::json record_of(const TempFolder& folder) {
  return nlohmann::json::parse(read_text(folder / "run" / "artifacts/memory.json"));
}

TEST(MemoryWatch, ACleanRunLeavesARecordThatSumsToItsPeak) {
  const TempFolder folder;
  EXPECT_THAT(run(folder, {}, {"steps=6"}), IsEmpty());
  const nlohmann::json record = record_of(folder);
  EXPECT_EQ(record.at("step"), 3);
  EXPECT_EQ(record.at("samples"), 8);
  std::int64_t sum = 0;
  std::map<std::string, std::int64_t> bytes;
  for (const auto& each : record.at("categories")) {
    sum += each.at("bytes").get<std::int64_t>();
    bytes[each.at("name")] = each.at("bytes").get<std::int64_t>();
  }
  EXPECT_EQ(sum, record.at("peak").get<std::int64_t>());
  const std::int64_t weights = (8 * 6 + 8 + 4 * 8 + 4) * 4;
  EXPECT_EQ(bytes.at("parameters"), weights);
  EXPECT_GE(bytes.at("optimizer state"), 2 * weights);  // AdamW's moments
  EXPECT_GE(bytes.at("averages"), weights);
  EXPECT_GE(bytes.at("inputs"), 8 * (6 + 4) * 4 + 8 * 8);
  EXPECT_GT(bytes.at("activations"), 0);
  std::vector<std::string> marks;
  for (const auto& mark : record.at("marks")) {
    marks.push_back(mark.at("name"));
  }
  EXPECT_THAT(marks, ::testing::IsSupersetOf({"start", "forward", "in the loss", "backward", "update", "end"}));
}

TEST(MemoryWatch, TheSmallerBatchAtTheEndOfAnEpochIsOnlyRecordedWhereNoOtherComes) {
  for (const auto& [steps, step, samples] :
       {std::tuple{"steps=6", 4, 16}, {"steps=3", 3, 8}}) {  // batches of 16, 16, 8
    const TempFolder folder;
    EXPECT_THAT(run(folder, {}, {"batch=16", steps}), IsEmpty());
    const nlohmann::json record = record_of(folder);
    EXPECT_EQ(record.at("step"), step);
    EXPECT_EQ(record.at("samples"), samples);
  }
}

TEST(MemoryWatch, AListOfOutputsIsFoundWithinAHundredSteps) {
  const TempFolder folder;
  std::vector<at::Tensor> kept;
  const auto keep = [&](const at::Tensor& outputs) { kept.push_back(outputs.detach().repeat({64, 128})); };
  const auto found = run(folder, {.in_loss = keep}, {"steps=100", "eval_every=1000"});
  ASSERT_EQ(found.size(), 1);
  EXPECT_THAT(found[0], AllOf(HasSubstr("memory held by tensors grows by 1.00 MiB a step"), HasSubstr("repeat"),
                              HasSubstr("float [512, 512]"), HasSubstr("what forward allocated stays"),
                              HasSubstr("a list or a cache keeps a tensor of every step")));
  EXPECT_THAT(record_of(folder).at("findings").get<std::vector<std::string>>(), ::testing::ElementsAre(found[0]));
}

TEST(MemoryWatch, AListThatKeepsItsGraphIsNamed) {
  const TempFolder folder;
  std::vector<at::Tensor> kept;
  const auto keep = [&](const at::Tensor& outputs) { kept.push_back(outputs.repeat({64, 128}).exp().sum()); };
  const auto found = run(folder, {.in_loss = keep}, {"steps=100", "eval_every=1000"});
  ASSERT_EQ(found.size(), 1);
  EXPECT_THAT(found[0], AllOf(HasSubstr("memory held by tensors grows by"), HasSubstr("exp"), HasSubstr("of its graph"),
                              HasSubstr("total_loss += loss")));
}

// The tensors of the steps are freed: only nodes of the graph stay, on the heap.
TEST(MemoryWatch, ASumOfLossesKeepsItsGraph) {
  const TempFolder folder;
  at::Tensor total;
  const auto add = [&](const at::Tensor& outputs) {
    const at::Tensor loss = outputs.square().mean();
    total = total.defined() ? total + loss : loss;
  };
  const auto found = run(folder, {.in_loss = add}, {"steps=4000", "eval_every=10000"});
  ASSERT_EQ(found.size(), 1);
  EXPECT_THAT(found[0], AllOf(HasSubstr(" grows by "), HasSubstr("of its graph"), HasSubstr("total_loss += loss")));
}

TEST(MemoryWatch, ACacheOfBatchesIsFound) {
  const TempFolder folder;
  std::vector<at::Tensor> cache;
  const auto keep = [&](const core::Batch&) { cache.push_back(at::ones({1 << 18})); };
  const auto found = run(folder, {.in_source = keep}, {"steps=120", "eval_every=1000"});
  ASSERT_EQ(found.size(), 1);
  EXPECT_THAT(found[0], AllOf(HasSubstr("1.00 MiB a step"), HasSubstr("what input allocated stays"),
                              HasSubstr("the source of batches")));
}

TEST(MemoryWatch, AGrowingListOfEventsIsFound) {
  const TempFolder folder;
  std::vector<std::string> events;
  const auto keep = [&](const core::Batch&) { events.emplace_back(4000, 'x'); };
  const auto found = run(folder, {.in_source = keep}, {"steps=4000", "eval_every=10000"});
  ASSERT_EQ(found.size(), 1);
  EXPECT_THAT(found[0], AllOf(HasSubstr("host memory outside tensors grows by"), HasSubstr("a list or a cache")));
}

TEST(MemoryWatch, AnEvaluationWithGradientsIsNamed) {
  const TempFolder folder;
  const auto found = run(folder, {.gradients = true}, {"steps=10"});
  ASSERT_EQ(found.size(), 1);
  EXPECT_THAT(found[0], HasSubstr("the evaluation computes with gradients on"));
}

TEST(MemoryWatch, PredictionsJoinedOnTheDeviceAreFound) {
  const TempFolder folder;
  std::vector<at::Tensor> joined;
  const auto join = [&](const at::Tensor& outputs) { joined.push_back(outputs.repeat({64, 128})); };
  const auto found = run(folder, {.in_evaluation = join}, {"steps=10", "batch=1"});
  ASSERT_EQ(found.size(), 1);
  EXPECT_THAT(found[0], AllOf(HasSubstr("128 KiB per batch of an evaluation"), HasSubstr("kept or joined")));
}

// They warm up, evaluate every 50 steps with memory that each evaluation adds to, save, and fill a cache.
TEST(MemoryWatch, CleanRunsRaiseNoAlarm) {
  for (std::int64_t run_number = 0; run_number < 20; ++run_number) {
    const TempFolder folder;
    std::vector<at::Tensor> cache;
    std::vector<std::string> texts;
    std::int64_t batches = 0;
    Planted planted;
    planted.in_source = [&](const core::Batch&) {
      ++batches;
      if (batches < 20 + 2 * run_number || (run_number % 2 == 0 && batches % 50 == 0)) {
        cache.push_back(at::ones({1 << 12}));
        texts.emplace_back(3000, 'x');
      }
    };
    EXPECT_THAT(run(folder, planted, {"steps=500", run_number % 4 == 0 ? "eval_every=50" : "eval_every=200"}),
                IsEmpty())
        << run_number;
  }
}

}  // namespace
}  // namespace stoker::job
