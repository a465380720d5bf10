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

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/io/safetensors.h"
#include "stoker/job/job.h"
#include "stoker/job/split_report.h"
#include "support/lockstep_ranks.h"
#include "support/temp_folder.h"
#include "support/toy_trainable.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
using stoker::testing::TempFolder;
using stoker::testing::toy_batch;
using stoker::testing::ToyTrainable;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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
    threads_seen.insert(at::get_num_threads());
    return ToyTrainable::forward_segment(segment, {at::dropout(values[0], 0.2, training_)});
  }
  void set_training(bool on) override { training_ = on; }
  static inline std::set<int> threads_seen;

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

// The same rows sample by sample; in training with noise that depends on the seed and the epoch.
tasks::OwnTask toy_by_sample(const std::string& name) {
  tasks::OwnTask own = toy(name);
  own.training = nullptr;
  own.evaluation = nullptr;
  own.sample = [](tasks::Split split, std::int64_t index, CounterRng random) {
    const core::Batch row = toy_batch(1, at::kFloat, index);
    const double noise = split == tasks::Split::kTrain ? random.uniform(-0.1, 0.1) : 0;
    return std::vector<core::NamedTensor>{{"x", row["x"][0] + noise}, {"y", row["y"][0]}, {"mask", row["mask"][0]}};
  };
  return own;
}

const std::atomic<bool> kNever = false;

Job prepared(const TempFolder& folder, const std::string& run, const std::vector<std::string>& words,
             std::shared_ptr<core::Communicator> ranks = nullptr) {
  static const bool added = [] {
    tasks::add_own_task(toy("toy"));
    tasks::add_own_task(toy_by_sample("toy_by_sample"));
    return true;
  }();
  EXPECT_TRUE(added);
  std::vector<std::string> all{"data=rows",  "device=cpu", "batch=8", "precision=fp32",
                               "intra_op=1", "threads=0",  "ema=0.9"};
  all.insert(all.end(), words.begin(), words.end());
  Request request = make_request({}, all);
  request.run = (folder / run).native();
  request.ranks = std::move(ranks);
  return Job::prepare(request, kSilent);
}

fs::path train(const TempFolder& folder, const std::string& run, const std::vector<std::string>& words) {
  Job job = prepared(folder, run, words);
  EXPECT_FALSE(job.train({}, kNever).test.empty());
  return job.run_path();
}

std::string last_bytes(const fs::path& run) {
  return read_text(run / "checkpoints/last/weights.safetensors") +
         read_text(run / "checkpoints/last/state.safetensors");
}

// Batches until an error in the third.
class BrokenRows final : public core::BatchSource {
 public:
  explicit BrokenRows(const tasks::BatchRequest& request) : rows_(request, true) {}
  [[nodiscard]] std::optional<core::Batch> next() override {
    if (++batches_ == 3) {
      fail<DataError>("test", "the disk is gone");
    }
    return rows_.next();
  }

 private:
  ToyRows rows_;
  int batches_ = 0;
};

// Its log says where the time of the steps before the error went.
TEST(OwnTask, ARunThatFailsTellsWhatItSaw) {
  static const bool added = [] {
    tasks::OwnTask own = toy("broken_rows");
    own.training = [](const tasks::BatchRequest& request) { return std::make_unique<BrokenRows>(request); };
    tasks::add_own_task(own);
    return true;
  }();
  EXPECT_TRUE(added);
  const TempFolder folder;
  Job job = prepared(folder, "run", {"task=broken_rows", "steps=9"});
  EXPECT_THROW((void)job.train({}, kNever), DataError);
  const std::string log = read_text(job.run_path() / "metrics.jsonl");
  const std::size_t whole = log.find("\"whole\":true"), end = log.find("\"event\":\"run_finished\"");
  ASSERT_NE(whole, std::string::npos) << log;
  ASSERT_NE(end, std::string::npos) << log;
  EXPECT_LT(whole, end);
  const std::size_t line = log.rfind('\n', whole) + 1;
  const std::string told = log.substr(line, log.find('\n', line) - line);
  EXPECT_THAT(told, HasSubstr("\"steps\":2,"));
  EXPECT_THAT(told, HasSubstr("\"name\":\"checkpoint\"")) << "the rescue of the steps so far";
}

TEST(OwnTask, ARunResumesToTheSameBytes) {
  for (const std::string task : {"task=toy", "task=toy_by_sample"}) {
    const TempFolder folder;
    const fs::path whole = train(folder, "whole", {task, "steps=12"});
    for (const char* steps : {"steps=6", "steps=7"}) {  // after an epoch of 3 steps, and within one
      const fs::path part = train(folder, steps, {task, steps});
      EXPECT_NE(last_bytes(part), last_bytes(whole));
      (void)Job::resume(part, {"steps=12"}, kSilent).train({}, kNever);
      EXPECT_EQ(last_bytes(part), last_bytes(whole)) << task << " " << steps;
    }
  }
}

// The weights of the last checkpoint, and the metrics.
struct Result {
  std::map<std::string, at::Tensor> weights;
  std::vector<core::MetricValue> val, test;
  std::string plan;
};

Result result_of(Job& job, const Outcome& outcome) {
  return {io::read_safetensors(job.run_path() / "checkpoints/last/weights.safetensors").tensors, outcome.best,
          outcome.test, train::plan_to_json(job.plan())};
}

void expect_alike(const Result& a, const Result& b) {
  for (const auto& [name, tensor] : a.weights) {
    EXPECT_LT((tensor - b.weights.at(name)).abs().max().item<double>(), 1e-6) << name;
  }
  for (const auto& [x, y] : {std::pair(&a.val, &b.val), std::pair(&a.test, &b.test)}) {
    ASSERT_EQ(x->size(), y->size());
    for (std::size_t i = 0; i < x->size(); ++i) {
      EXPECT_DOUBLE_EQ((*x)[i].value, (*y)[i].value) << (*x)[i].name;
    }
  }
}

// Rank 0's plan, the metrics of all samples, and the dropout of microbatches; then the same after a resume.
TEST(OwnTask, TwoRanksRunAsOneWithTwoMicrobatches) {
  for (const std::string task : {"task=toy", "task=toy_by_sample"}) {
    const TempFolder folder;
    Job alone = prepared(folder, "alone", {task, "batch=10", "microbatch=5", "steps=7"});
    const Result expected = result_of(alone, alone.train({}, kNever));
    std::vector<Result> found(2), resumed(2);
    stoker::testing::LockstepRanks(2).run([&](core::Communicator& communicator) {
      const std::shared_ptr<core::Communicator> ranks(std::shared_ptr<void>(), &communicator);
      const auto rank = static_cast<std::size_t>(communicator.rank());
      const std::string run = "rank" + std::to_string(rank);
      Job job = prepared(folder, run, {task, "batch=10", "steps=4"}, ranks);
      found[rank] = result_of(job, job.train({}, kNever));
      Job again = Job::resume(job.run_path(), {"steps=7"}, kSilent, ranks);
      resumed[rank] = result_of(again, again.train({}, kNever));
    });
    EXPECT_EQ(found[0].plan, found[1].plan);
    expect_alike(found[0], found[1]);
    expect_alike(resumed[0], expected);
    expect_alike(resumed[1], expected);
  }
}

TEST(OwnTask, ARankThatAsksForSomethingElseIsRefused) {
  const TempFolder folder;
  std::vector<std::string> said(2);
  stoker::testing::LockstepRanks(2).run([&](core::Communicator& communicator) {
    const std::shared_ptr<core::Communicator> ranks(std::shared_ptr<void>(), &communicator);
    const auto rank = static_cast<std::size_t>(communicator.rank());
    try {
      (void)prepared(folder, "new", {"task=toy", rank == 0 ? "lr=0.02" : "lr=0.5"}, ranks);
    } catch (const ConfigError& error) {
      said[rank] = error.what();
    }
  });
  EXPECT_THAT(said, ::testing::Each(AllOf(HasSubstr("lr=0.5"), HasSubstr("lr=0.02"), HasSubstr("on rank 0"))));
}

// Rank 1 lacks the run, or asks for what cannot be: rank 0 must not wait for it.
TEST(OwnTask, ARankThatCannotBeginEndsAllRanks) {
  const TempFolder folder;
  const fs::path run = train(folder, "run", {"task=toy", "epochs=1"});
  for (const bool resume : {false, true}) {
    std::vector<std::string> said(2);
    stoker::testing::LockstepRanks(2).run([&](core::Communicator& communicator) {
      const std::shared_ptr<core::Communicator> ranks(std::shared_ptr<void>(), &communicator);
      const bool first = communicator.rank() == 0;
      try {
        if (resume) {
          (void)Job::resume(first ? run : folder / "nowhere", {}, kSilent, ranks);
        } else {
          (void)prepared(folder, "new", {first ? "task=toy" : "plan=nowhere.json"}, ranks);
        }
      } catch (const Error& error) {
        said[static_cast<std::size_t>(communicator.rank())] = error.what();
      }
    });
    const std::string cause = resume ? "nowhere" : "plan=";
    EXPECT_THAT(said[0], AllOf(HasSubstr("rank 1 failed"), HasSubstr(cause)));
    EXPECT_THAT(said[1], AllOf(Not(HasSubstr("rank 1 failed")), HasSubstr(cause)));
  }
}

TEST(OwnTask, ARankWithoutAPlanEndsAllRanks) {
  const TempFolder folder;
  std::vector<std::string> said(2);
  stoker::testing::LockstepRanks(2).run([&](core::Communicator& communicator) {
    const std::shared_ptr<core::Communicator> ranks(std::shared_ptr<void>(), &communicator);
    try {
      (void)prepared(folder, "run", {"task=toy", "batch=1000"}, ranks);
    } catch (const Error& error) {
      said[static_cast<std::size_t>(communicator.rank())] = error.what();
    }
  });
  EXPECT_THAT(said[0], HasSubstr("larger than the 20 training samples"));
  EXPECT_THAT(said[1], AllOf(HasSubstr("rank 0 failed"), HasSubstr("larger than the 20 training samples")));
}

// Switches of a job that was prepared later do not stay.
TEST(OwnTask, ARunTrainsWithItsOwnThreads) {
  const TempFolder folder;
  Job one = prepared(folder, "one", {"task=toy", "epochs=1"});
  Job two = prepared(folder, "two", {"task=toy", "epochs=1", "intra_op=2"});
  SeededToy::threads_seen.clear();
  (void)one.train({}, kNever);
  EXPECT_EQ(SeededToy::threads_seen, (std::set<int>{1}));
}

// What a source gives if its rules are broken by change, read until the end of the first epoch.
std::string broken(const std::string& name, std::int64_t samples, const std::function<core::Batch(core::Batch)>& change,
                   std::int64_t rows = 8) {
  class Changed final : public core::BatchSource {
   public:
    Changed(const tasks::BatchRequest& request, const std::function<core::Batch(core::Batch)>& change)
        : rows_(request, true), change_(change) {}
    [[nodiscard]] std::optional<core::Batch> next() override {
      std::optional<core::Batch> batch = rows_.next();
      return batch ? std::optional(change_(std::move(*batch))) : std::nullopt;
    }

   private:
    ToyRows rows_;
    const std::function<core::Batch(core::Batch)>& change_;
  };
  tasks::OwnTask own = toy(name);
  own.train_samples = samples;
  own.training = [&](const tasks::BatchRequest& request) { return std::make_unique<Changed>(request, change); };
  tasks::add_own_task(std::move(own));
  const auto task = std::move(*tasks::task_kind(name).open("rows", {})).settle(name, {});
  tasks::BatchRequest request;
  request.batch = rows;
  const auto source = task->training_batches(request);
  try {
    while (source->next()) {
    }
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(OwnTask, NamesTheRuleThatASourceBreaks) {
  const auto same = [](core::Batch batch) { return batch; };
  EXPECT_EQ(broken("kept", kSamples, same), "");
  EXPECT_THAT(broken("longer", kSamples + 10, same, 10),
              HasSubstr("ended after 2 batches; train_samples and batch=10 make 3"));
  EXPECT_THAT(broken("unplaced", kSamples, [](core::Batch batch) { return core::Batch({}, batch.indices()); }),
              HasSubstr("step 0 of epoch 0, but step 1 of epoch 0 is next"));
  EXPECT_THAT(broken("empty", kSamples, [](core::Batch batch) { return batch.slice(0, 0); }),
              HasSubstr("has 0 samples; train_samples and batch=8 make 8"));
  EXPECT_THAT(broken("shorter", kSamples,
                     [](core::Batch batch) { return batch.slice(0, batch.position().step == 1 ? 5 : batch.size()); }),
              HasSubstr("step 1 of epoch 0 has 5 samples; train_samples and batch=8 make 8"));
  EXPECT_THAT(broken("too_long", kSamples - 8,
                     [](core::Batch batch) {
                       return batch.slice(0, std::min<std::int64_t>(batch.size(), batch.position().step == 1 ? 4 : 8));
                     }),
              HasSubstr("epoch 0 goes on after 2 batches"));
}

TEST(OwnTask, ItsOptimizerDecidesTheRate) {
  const auto rate = [](const std::string& name, const std::string& optimizer) {
    tasks::OwnTask own = toy(name);
    own.defaults = {{"optimizer", optimizer}};
    tasks::add_own_task(std::move(own));
    const std::vector<core::PlanRow> rows = tasks::task_kind(name).open("rows", {})->recipe({});
    return std::ranges::find(rows, "lr", &core::PlanRow::key)->value;
  };
  EXPECT_EQ(rate("with_sgd", "sgd"), "0.1");
  EXPECT_EQ(rate("with_adam", "adam"), "0.001");
}

TEST(OwnTask, ItsCheckpointIsEvaluated) {
  const TempFolder folder;
  const fs::path run = train(folder, "run", {"task=toy", "epochs=1"});
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
  (void)train(folder, "run", {"task=toy", "epochs=1"});
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
  EXPECT_THAT(refusal([](auto& own) { own.model = nullptr; }), HasSubstr("set model"));
  EXPECT_THAT(refusal([](auto& own) { own.training = nullptr; }), HasSubstr("either sample or training"));
  const auto by_sample = [](auto& own) { own.sample = [](auto...) { return std::vector<core::NamedTensor>(); }; };
  EXPECT_THAT(refusal(by_sample), HasSubstr("either sample or training"));
  EXPECT_THAT(refusal([&](auto& own) { by_sample(own), own.training = nullptr; }),
              HasSubstr("either sample or training"));
  EXPECT_THAT(refusal([&](auto& own) { by_sample(own), own.evaluation = nullptr; }),
              HasSubstr("either sample or training"));
  EXPECT_THAT(refusal([](auto& own) { own.train_samples = 0; }), HasSubstr("set train_samples"));
  EXPECT_THAT(refusal([](auto& own) { own.val_samples = -5; }), HasSubstr("neither may be negative"));
  EXPECT_THAT(refusal([](auto& own) { own.evaluation = nullptr; }),
              HasSubstr("20 validation and 20 test samples, and does not set evaluation"));
  EXPECT_THAT(refusal([](auto& own) { own.name = "tabular"; }), HasSubstr("it is already in use"));
}

}  // namespace
}  // namespace stoker::job
