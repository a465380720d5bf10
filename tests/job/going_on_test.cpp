// SPDX-License-Identifier: Apache-2.0
// Runs that continue: after an error, by a second call of train(), and with a best checkpoint that is better than all
// later ones.
#include <ATen/ops/isfinite.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/io/checkpoint/store.h"
#include "stoker/job/job.h"
#include "stoker/models/builder.h"
#include "stoker/models/registry.h"
#include "support/image_set.h"
#include "support/job_runs.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
using stoker::testing::Ran;
using stoker::testing::StopAt;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const Say kSilent = [](const std::string&) {};

// 45 samples in batches of 8: 6 steps per epoch.
class GoingOn : public ::testing::Test {
 protected:
  GoingOn() {
    testing::write_striped_set(folder_, "data/train/", 15);
    testing::write_striped_set(folder_, "data/val/", 5, 100);
  }
  [[nodiscard]] Request request(const std::string& run, std::vector<std::string> words = {}) const {
    words.insert(words.begin(), {"device=cpu", "batch=8", "threads=0", "intra_op=1", "precision=fp32",
                                 "layout=contiguous", "model=cnn"});
    Request result = make_request({}, words);
    result.data = folder_ / "data";
    result.run = (folder_ / run).native();
    return result;
  }
  [[nodiscard]] static Ran train(Request request) {
    const std::atomic<bool> never{false};
    Job job = Job::prepare(std::move(request), kSilent);
    const Outcome outcome = job.train({}, never);
    return {outcome, job.run_path()};
  }
  [[nodiscard]] static std::string weights(const fs::path& run) {
    return read_text(run / "checkpoints/last/weights.safetensors");
  }
  [[nodiscard]] static std::string state(const fs::path& run) {
    return read_text(run / "checkpoints/last/state.safetensors");
  }

  testing::TempFolder folder_;
};

// As after a kill: "best" is of a later step than the one that the run resumes from.
TEST_F(GoingOn, AResumeKeepsABetterBest) {
  const auto resumed = [&](const std::string& name, double best_value) {
    const Ran ran = train(request(name, {"epochs=1"}));
    io::CheckpointStore store(ran.folder / "checkpoints");
    io::Checkpoint best = store.load("best"), last = store.load("last");
    nlohmann::json info = *best.info;
    info["metric"]["value"] = best_value;
    best.info = info;
    store.save("best", best);
    last.state.numbers["progress.best_metric"] = -1.0;  // by this number alone, any value is an improvement
    store.save("last", last);
    const std::string before = read_text(ran.folder / "checkpoints/best/weights.safetensors");
    std::atomic<bool> never{false};
    const Outcome outcome = Job::resume(ran.folder, {"epochs=2"}, kSilent).train({}, never);
    const bool kept = read_text(ran.folder / "checkpoints/best/weights.safetensors") == before;
    EXPECT_EQ(outcome.best.front().name, "accuracy");
    EXPECT_EQ(outcome.best.front().value == best_value, kept);
    return kept;
  };
  EXPECT_TRUE(resumed("better", 1.5));
  EXPECT_FALSE(resumed("worse", -0.5));
}

TEST_F(GoingOn, ADamagedBestIsNamedAndReplaced) {
  const Ran ran = train(request("run", {"epochs=1"}));
  write_file_atomically(ran.folder / "checkpoints/best/info.json", "{}");
  io::CheckpointStore store(ran.folder / "checkpoints");
  io::Checkpoint last = store.load("last");
  last.state.numbers["progress.best_metric"] = -1.0;
  store.save("last", last);
  std::atomic<bool> never{false};
  (void)Job::resume(ran.folder, {"epochs=2"}, kSilent).train({}, never);
  EXPECT_THAT(read_text(ran.folder / "metrics.jsonl"), HasSubstr("the existing best checkpoint is ignored"));
  EXPECT_NO_THROW((void)store.load("best"));
}

TEST_F(GoingOn, WithoutAGoodLastTheBestIsOffered) {
  const Ran ran = train(request("run", {"epochs=1"}));
  const auto refusal = [&] {
    try {
      (void)Job::resume(ran.folder, {}, kSilent);
    } catch (const CheckpointError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string offer = "weights=" + ran.folder.native() + "` starts a new run from its best checkpoint";
  write_file_atomically(ran.folder / "checkpoints/last/weights.safetensors", "cut");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("is damaged"), HasSubstr(offer)));
  fs::remove_all(ran.folder / "checkpoints/last");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("has no checkpoint to resume from"), HasSubstr(offer)));
  fs::remove_all(ran.folder / "checkpoints/best");
  EXPECT_THAT(refusal(), Not(HasSubstr("best")));
}

TEST_F(GoingOn, TrainCalledAgainGoesOn) {
  const Ran straight = train(request("straight", {"epochs=2"}));
  std::atomic<bool> stop{false};
  Job job = Job::prepare(request("run", {"epochs=2"}), kSilent);
  std::vector<std::unique_ptr<core::EventSink>> sinks;
  sinks.push_back(std::make_unique<StopAt>(stop, 4));
  const Outcome first = job.train(std::move(sinks), stop);
  ASSERT_EQ(first.end, train::LoopEnd::kStopped);
  stop = false;
  for (int again = 0; again < 2; ++again) {  // the second time, nothing is left
    EXPECT_EQ(job.train({}, stop).step, 12);
    EXPECT_EQ(weights(job.run_path()), weights(straight.folder));
    EXPECT_EQ(state(job.run_path()), state(straight.folder));
  }
}

TEST_F(GoingOn, AnEndThatHasBeenPassedIsRefused) {
  const Ran ran = train(request("run", {"epochs=2"}));
  const std::string plan = read_text(ran.folder / "plan.json");
  for (const char* change : {"epochs=1", "steps=11"}) {
    try {
      (void)Job::resume(ran.folder, {change}, kSilent);
      FAIL() << change;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::string("the run is at step 12, but ") + change + " ends it at step "));
    }
  }
  EXPECT_EQ(read_text(ran.folder / "plan.json"), plan);
  EXPECT_NO_THROW((void)Job::resume(ran.folder, {"steps=12"}, kSilent)) << "the run may end where it is";
}

TEST_F(GoingOn, TrainCalledAgainNeedsACheckpoint) {
  Job job = Job::prepare(request("run", {"epochs=1"}), kSilent);
  const std::atomic<bool> never{false};
  (void)job.train({}, never);
  fs::remove_all(job.run_path() / "checkpoints");
  try {
    (void)job.train({}, never);
    FAIL() << "it started again at step 0 with trained weights";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr("has no checkpoint"));
    EXPECT_THAT(error.what(), HasSubstr("one is saved after each epoch, or every save_every= steps"));
  }
}

TEST_F(GoingOn, AFailingRunLeavesItsLastWholeStep) {
  Request failing = request("run", {"epochs=9", "optimizer=sgd", "lr=10000", "skip_limit=0", "ema=0", "model=mlp"});
  EXPECT_THROW((void)train(std::move(failing)), Error);
  const io::Checkpoint last = io::CheckpointStore(folder_ / "run/checkpoints").load("last");
  const std::int64_t step = last.state.integer("progress.step");
  EXPECT_GT(step, 1);
  EXPECT_NE(step % 6, 0) << "the end of an epoch saves it anyway";
  const std::string log = read_text(folder_ / "run/metrics.jsonl");
  EXPECT_THAT(log, HasSubstr(fmt::format("step {} was saved before the error", step)));
  EXPECT_THAT(log, HasSubstr("\"outcome\":\"failed\""));
  for (const auto& [name, tensor] : last.weights) {
    EXPECT_TRUE(!tensor.is_floating_point() || at::isfinite(tensor).all().item<bool>()) << name;
  }
}

// A network with a buffer that holds infinities from the start ("mask.running_var"), like an attention mask, and with
// batch-norm statistics. If it overflows, its variances become infinite, its weights stay finite, and its twentieth
// forward pass fails.
std::unique_ptr<models::Network> with_infinities(const models::ModelOptions& options, bool overflows) {
  models::NetworkBuilder builder(options.seed);
  builder.begin_segment("all");
  const models::BatchNorm2d norm = builder.batch_norm("norm", options.channels);
  const models::BatchNorm2d mask = builder.batch_norm("mask", options.channels);
  mask.running_var.fill_(-std::numeric_limits<float>::infinity());
  const models::Linear fc = builder.linear("fc", options.channels, options.classes);
  builder.end_segment([=, passes = std::make_shared<int>(0)](const at::Tensor& x) {
    if (overflows && ++*passes == 20) {
      fail<ConfigError>("test", "enough");
    }
    return fc(norm(overflows ? x * 1e20 : x).square().mean({2, 3}));
  });
  return builder.finish();
}

const bool kModelsAdded = [] {
  models::add_model({"masked", "for this test"}, [](auto& options) { return with_infinities(options, false); });
  models::add_model({"overflowing", "for this test"}, [](auto& options) { return with_infinities(options, true); });
  return true;
}();

TEST_F(GoingOn, AConstantMayHoldInfinities) {
  ASSERT_TRUE(kModelsAdded);
  for (const std::string ema : {"0", "0.9"}) {
    EXPECT_THROW((void)train(request("run" + ema, {"epochs=9", "optimizer=sgd", "lr=10000", "weight_decay=10",
                                                   "skip_limit=0", "model=masked", "val=0", "ema=" + ema})),
                 Error);
    EXPECT_THAT(read_text(folder_ / ("run" + ema) / "metrics.jsonl"), HasSubstr("was saved before the error"));
  }
}

TEST_F(GoingOn, StatisticsThatAreNotFiniteAreNotSaved) {
  ASSERT_TRUE(kModelsAdded);
  EXPECT_THROW((void)train(request("run", {"epochs=9", "model=overflowing", "val=0", "ema=0"})), ConfigError);
  EXPECT_THAT(read_text(folder_ / "run/metrics.jsonl"), HasSubstr("is not saved: norm.running_var is not finite"));
}

}  // namespace
}  // namespace stoker::job
