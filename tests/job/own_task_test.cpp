// SPDX-License-Identifier: Apache-2.0
// Whole runs of a program's own Trainable with its own source of batches: they resume to the same bytes and evaluate,
// and errors name what is missing.
#include "stoker/tasks/own_task.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/rand.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/job/job.h"
#include "stoker/job/split_report.h"
#include "support/temp_folder.h"
#include "support/toy_trainable.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
using stoker::testing::TempFolder;
using stoker::testing::toy_batch;
using stoker::testing::ToyTrainable;
using ::testing::HasSubstr;

const Say kSilent = [](const std::string&) {};
constexpr std::int64_t kSamples = 20;

// Weights depend on the seed, and training applies dropout.
class SeededToy final : public ToyTrainable {
 public:
  explicit SeededToy(std::uint64_t seed) : ToyTrainable(at::kFloat) {
    const at::NoGradGuard no_grad;
    for (const core::Parameter& each : parameters()) {
      at::Tensor(each.tensor).add_(1e-3 * static_cast<double>(seed));
    }
  }
  [[nodiscard]] core::TensorList forward_segment(int segment, core::TensorList values) override {
    return ToyTrainable::forward_segment(segment, {at::dropout(values[0], 0.2, training_)});
  }
  void set_training(bool on) override { training_ = on; }

 private:
  bool training_ = true;
};

class ToyRows final : public core::BatchSource {
 public:
  ToyRows(const tasks::BatchRequest& request, bool training)
      : batch_(request.batch), at_(request.start), training_(training) {}
  [[nodiscard]] std::optional<core::Batch> next() override {
    const std::int64_t first = at_.step * batch_, rows = std::min(batch_, kSamples - first);
    if (rows <= 0) {
      at_ = {at_.epoch + 1, 0};
      return std::nullopt;
    }
    const core::Batch made = toy_batch(rows, at::kFloat, first + (training_ ? 1000 * at_.epoch : 0));
    core::Batch batch(at_, made.indices());
    for (const char* field : {"x", "y", "mask"}) {
      batch.set(field, made[field]);
    }
    ++at_.step;
    return batch;
  }

 private:
  std::int64_t batch_;
  core::Position at_;
  bool training_;
};

tasks::OwnTask toy(const std::string& name) {
  tasks::OwnTask own;
  own.name = name;
  own.model = [](std::uint64_t seed) { return std::make_unique<SeededToy>(seed); };
  own.training = [](const tasks::BatchRequest& request) { return std::make_unique<ToyRows>(request, true); };
  own.evaluation = [](tasks::Split, const tasks::BatchRequest& request) {
    return std::make_unique<ToyRows>(request, false);
  };
  own.train_samples = own.val_samples = own.test_samples = kSamples;
  own.defaults = {{"lr", "0.02"}, {"schedule", "constant"}, {"warmup", "0"}};
  return own;
}

fs::path train(const TempFolder& folder, const std::string& run, const std::string& epochs) {
  static const bool added = [] {
    tasks::add_own_task(toy("toy"));
    return true;
  }();
  EXPECT_TRUE(added);
  Request request = make_request({}, {"task=toy", "data=rows", "device=cpu", "batch=8", "precision=fp32", "intra_op=1",
                                      "threads=0", "ema=0.9", "epochs=" + epochs});
  request.run = (folder / run).native();
  Job job = Job::prepare(request, kSilent);
  const std::atomic<bool> never = false;
  EXPECT_FALSE(job.train({}, never).test.empty());
  return job.run_path();
}

std::string last_bytes(const fs::path& run) {
  return read_text(run / "checkpoints/last/weights.safetensors") +
         read_text(run / "checkpoints/last/state.safetensors");
}

TEST(OwnTask, ARunResumesToTheSameBytes) {
  const TempFolder folder;
  const fs::path whole = train(folder, "whole", "4"), part = train(folder, "part", "2");
  EXPECT_NE(last_bytes(part), last_bytes(whole));
  const std::atomic<bool> never = false;
  (void)Job::resume(part, {"epochs=4"}, kSilent).train({}, never);
  EXPECT_EQ(last_bytes(part), last_bytes(whole));
}

TEST(OwnTask, ItsCheckpointIsEvaluated) {
  const TempFolder folder;
  const fs::path run = train(folder, "run", "1");
  const SplitReport report = evaluate_run(run, {}, "val", "last", "cpu");
  EXPECT_EQ(report.samples, kSamples);
  EXPECT_FALSE(report.metrics.empty());
  EXPECT_TRUE(fs::exists(run / "report.html"));
}

// The program that called the run continues with its own threads and random numbers.
TEST(OwnTask, ARunPutsBackTheProcessesSwitches) {
  const TempFolder folder;
  at::set_num_threads(2);
  at::manual_seed(3);
  const at::Tensor expected = at::rand({4});
  at::manual_seed(3);
  (void)train(folder, "run", "1");
  EXPECT_EQ(at::get_num_threads(), 2);
  EXPECT_TRUE(at::rand({4}).equal(expected));
}

TEST(OwnTask, SaysWhatIsMissing) {
  const auto refusal = [](auto change) {
    tasks::OwnTask own = toy("other");
    change(own);
    try {
      tasks::add_own_task(std::move(own));
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal([](auto& own) { own.model = nullptr; }), HasSubstr("needs a model"));
  EXPECT_THAT(refusal([](auto& own) { own.training = nullptr; }), HasSubstr("either samples or a source"));
  const auto by_sample = [](auto& own) { own.sample = [](auto...) { return std::vector<core::NamedTensor>(); }; };
  EXPECT_THAT(refusal(by_sample), HasSubstr("either samples or a source"));
  EXPECT_THAT(refusal([&](auto& own) { by_sample(own), own.training = nullptr; }),
              HasSubstr("either samples or a source"));
  EXPECT_THAT(refusal([&](auto& own) { by_sample(own), own.evaluation = nullptr; }),
              HasSubstr("either samples or a source"));
  EXPECT_THAT(refusal([](auto& own) { own.train_samples = 0; }), HasSubstr("set train_samples"));
  EXPECT_THAT(refusal([](auto& own) { own.evaluation = nullptr; }), HasSubstr("evaluation batches"));
  EXPECT_THAT(refusal([](auto& own) { own.name = "tabular"; }), HasSubstr("it is already in use"));
}

}  // namespace
}  // namespace stoker::job
