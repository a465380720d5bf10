// SPDX-License-Identifier: Apache-2.0
// Whole runs on a tiny data set: they learn, repeat bit for bit, and resume at any step bit for bit. hot_path_test.cpp
// tests the hot path.
#include "stoker/job/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/io/checkpoint/checksum.h"
#include "stoker/io/checkpoint/store.h"
#include "stoker/io/safetensors.h"
#include "stoker/job/split_report.h"
#include "support/guessing.h"
#include "support/image_set.h"
#include "support/job_runs.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
using stoker::testing::beats_guessing;
using stoker::testing::complaint;
using stoker::testing::means_of;
using stoker::testing::Ran;
using stoker::testing::StopAt;
using stoker::testing::TempFolder;
using stoker::testing::training_losses;
using stoker::testing::trains_like;
using stoker::testing::write_striped_set;
using ::testing::HasSubstr;

const Say kSilent = [](const std::string&) {};

std::string file_bytes(const fs::path& path) { return read_text(path); }

// Records the kinds of events in order, and the numbers of steps.
class Recorder final : public core::EventSink {
 public:
  explicit Recorder(std::vector<std::string>& seen) : seen_(seen) {}
  void on(const core::Event& event) override {
    static constexpr const char* kNames[] = {"run_started", "step",    "fed",     "evaluating", "evaluated",
                                             "saved",       "fault",   "finding", "artifact",   "histograms",
                                             "monitor",     "anatomy", "ranks",   "slow_step",  "run_finished"};
    static_assert(std::size(kNames) == std::variant_size_v<core::Event>);
    std::string text = kNames[event.index()];
    if (const auto* saved = std::get_if<core::CheckpointSaved>(&event)) {
      text += " " + saved->kind;
    }
    if (const auto* step = std::get_if<core::StepFinished>(&event)) {
      text += " " + std::to_string(step->step);
    }
    if (const auto* evaluated = std::get_if<core::Evaluated>(&event)) {
      text += " " + evaluated->split;
    }
    seen_.push_back(text);
  }
  [[nodiscard]] bool wants_every_step() const override { return true; }

 private:
  std::vector<std::string>& seen_;
};

class JobTest : public ::testing::Test {
 protected:
  JobTest() {
    write_striped_set(folder_, "data/train/", 15);
    write_striped_set(folder_, "data/val/", 5, 100);
    write_striped_set(folder_, "data/test/", 5, 200);
  }

  // 45 samples in batches of 8: 6 steps per epoch, the last with 5 samples.
  [[nodiscard]] Request request(const std::string& run, std::vector<std::string> words = {}) const {
    words.insert(words.begin(), {"device=cpu", "epochs=2", "batch=8", "threads=0", "intra_op=1", "precision=fp32",
                                 "layout=channels_last", "model=cnn", "ema=0.9"});
    Request result = make_request({}, words);
    result.data = folder_ / "data";
    result.run = (folder_ / run).native();
    return result;
  }

  Ran train(Request request, std::int64_t stop_at = -1, std::vector<std::string>* events = nullptr) const {
    std::atomic<bool> stop = stop_at == 0;
    Job job = Job::prepare(std::move(request), kSilent);
    std::vector<std::unique_ptr<core::EventSink>> sinks;
    if (stop_at > 0) {
      sinks.push_back(std::make_unique<StopAt>(stop, stop_at));
    }
    if (events != nullptr) {
      sinks.push_back(std::make_unique<Recorder>(*events));
    }
    const Outcome outcome = job.train(std::move(sinks), stop);
    return {outcome, job.run_path()};
  }

  [[nodiscard]] static std::string weights(const fs::path& run) {
    return file_bytes(run / "checkpoints/last/weights.safetensors");
  }
  [[nodiscard]] static std::string state(const fs::path& run) {
    return file_bytes(run / "checkpoints/last/state.safetensors");
  }

  TempFolder folder_;
};

TEST_F(JobTest, LearnsAndLeavesARunFolder) {
  const Ran ran = train(request("run", {"epochs=12", "label_smoothing=0"}));
  EXPECT_EQ(ran.outcome.end, train::LoopEnd::kDone);
  EXPECT_EQ(ran.outcome.step, 72);
  ASSERT_FALSE(ran.outcome.test.empty());
  EXPECT_TRUE(beats_guessing(ran.folder, 6, 3));
  EXPECT_GT(ran.outcome.test.front().value, 0.5);  // guessing is right one time in three; 15 images
  for (const char* file : {"config.toml", "plan.json", "metrics.csv", "metrics.jsonl",
                           "checkpoints/best/weights.safetensors", "checkpoints/last/state.safetensors"}) {
    EXPECT_TRUE(fs::is_regular_file(ran.folder / file)) << file;
    EXPECT_FALSE(fs::is_symlink((ran.folder / file).parent_path())) << file;
  }
  const SplitReport report = [&] {
    LoadedModel loaded = load_model(ran.folder, at::kCPU);
    return evaluate_split(loaded, *open_for(loaded, folder_ / "data"), "test", 4);
  }();
  EXPECT_EQ(report.samples, 15);
  EXPECT_DOUBLE_EQ(report.metrics.front().value, ran.outcome.test.front().value);
}

// For reports: the evaluated split as a table, a matrix, and images next to their gallery.
TEST_F(JobTest, LeavesThingsToLookAt) {
  const Ran ran = train(request("run", {"lr=1e-9", "ema=0"}));  // learns nothing, so that there are mistakes
  const auto artifact = [&](const std::string& name) {
    return nlohmann::json::parse(file_bytes(ran.folder / "artifacts" / (name + ".json")));
  };
  std::int64_t right = 0, all = 0;
  const auto confusion = artifact("confusion");
  EXPECT_EQ(confusion["labels"], (nlohmann::json{"across", "down", "plain"}));
  for (std::size_t row = 0; row < 3; ++row) {
    std::int64_t of_class = 0;
    for (std::size_t column = 0; column < 3; ++column) {
      of_class += confusion["values"][row][column].get<std::int64_t>();
      right += row == column ? confusion["values"][row][column].get<std::int64_t>() : 0;
    }
    EXPECT_EQ(of_class, 5);
    EXPECT_EQ(artifact("classes")["rows"][row][1], 5);
    all += of_class;
  }
  EXPECT_DOUBLE_EQ(static_cast<double>(right) / static_cast<double>(all), ran.outcome.test.front().value);
  EXPECT_EQ(artifact("predictions")["items"].size(), 15U);
  const auto mistakes = artifact("mistakes")["items"];
  EXPECT_EQ(static_cast<std::int64_t>(mistakes.size()), all - right);
  for (const auto& item : mistakes) {
    EXPECT_FALSE(item["good"].get<bool>());
    EXPECT_TRUE(file_bytes(ran.folder / "artifacts" / item["image"].get<std::string>()).starts_with("\x89PNG"));
  }
  const auto machine = nlohmann::json::parse(file_bytes(ran.folder / "machine.json"));
  EXPECT_FALSE(machine["cpu"].get<std::string>().empty());
  EXPECT_FALSE(machine.contains("resumed_at"));

  const Ran stopped = train(request("stopped"), 3);
  std::atomic<bool> never{false};
  (void)Job::resume(stopped.folder, {}, kSilent).train({}, never);
  EXPECT_EQ(nlohmann::json::parse(file_bytes(stopped.folder / "machine.json"))["resumed_at"],
            nlohmann::json({stopped.outcome.step}));
}

TEST_F(JobTest, EqualPlansGiveEqualBytes) {
  const Ran first = train(request("a"));
  const Ran second = train(request("b"));
  EXPECT_EQ(weights(first.folder), weights(second.folder));
  EXPECT_EQ(state(first.folder), state(second.folder));

  Request repeat = make_request({}, {});
  repeat.data = folder_ / "data";
  repeat.run = (folder_ / "c").native();
  repeat.plan_file = first.folder / "plan.json";
  EXPECT_EQ(weights(train(std::move(repeat)).folder), weights(first.folder));

  EXPECT_NE(weights(train(request("d", {"seed=2"})).folder), weights(first.folder));  // the comparisons can fail
}

TEST_F(JobTest, LoaderThreadsDoNotChangeTheWeights) {
  const std::string expected = weights(train(request("t0")).folder);
  for (const char* threads : {"threads=1", "threads=2", "threads=4"}) {
    EXPECT_EQ(weights(train(request(threads, {threads})).folder), expected) << threads;
  }
}

// Everything with state: moments, averages, accumulation with an uneven tail, autocast, threads that load ahead.
TEST_F(JobTest, ResumesAtTwentyStepsToTheSameBytes) {
  const std::vector<std::string> words = {"epochs=4", "save_every=1", "optimizer=adamw", "microbatch=3",
                                          "clip=0.5", "threads=2",    "precision=bf16",  "augment=pad_crop_flip"};
  const Ran straight = train(request("straight", words));
  EXPECT_EQ(straight.outcome.step, 24);
  for (std::int64_t step = 2; step < 22; ++step) {
    const Ran stopped = train(request("stop" + std::to_string(step), words), step);
    ASSERT_EQ(stopped.outcome.end, train::LoopEnd::kStopped);
    ASSERT_LT(stopped.outcome.step, 24);
    std::atomic<bool> never{false};
    // save_every=0 halves the time; how many threads load changes nothing.
    const std::vector<std::string> changes = {"save_every=0", "threads=" + std::to_string(step % 3)};
    const Outcome outcome = Job::resume(stopped.folder, changes, kSilent).train({}, never);
    EXPECT_EQ(outcome.step, 24);
    EXPECT_EQ(weights(stopped.folder), weights(straight.folder)) << "stopped at step " << stopped.outcome.step;
    EXPECT_EQ(state(stopped.folder), state(straight.folder)) << "stopped at step " << stopped.outcome.step;
    fs::remove_all(stopped.folder);
  }
}

// Convolutions and the head in bfloat16 with float32 master weights, norms in float32: it learns and resumes.
TEST_F(JobTest, HalfWeightsLearnAndResumeToTheSameBytes) {
  const std::vector<std::string> words = {"epochs=12", "label_smoothing=0", "precision=bf16", "half_weights=on"};
  const Ran straight = train(request("straight", words));
  EXPECT_TRUE(beats_guessing(straight.folder, 6, 3));
  EXPECT_TRUE(trains_like(straight.folder, train(request("twin", {"epochs=12", "label_smoothing=0"})).folder, 6));
  const auto tensors = io::read_safetensors(straight.folder / "checkpoints/last/weights.safetensors").tensors;
  int halves = 0, norms = 0;
  for (const auto& [name, tensor] : tensors) {
    halves += tensor.scalar_type() == at::kBFloat16;
    norms += tensor.scalar_type() == at::kFloat;
    EXPECT_EQ(tensor.scalar_type() == at::kBFloat16, tensor.dim() > 1 || name == "fc.bias") << name;
  }
  EXPECT_GT(halves, 0);
  EXPECT_GT(norms, 0);

  const Ran stopped = train(request("stopped", words), 7);
  std::atomic<bool> never{false};
  (void)Job::resume(stopped.folder, {}, kSilent).train({}, never);
  EXPECT_EQ(weights(stopped.folder), weights(straight.folder));
  EXPECT_EQ(state(stopped.folder), state(straight.folder));
  EXPECT_THROW((void)Job::prepare(request("x", {"half_weights=on"}), kSilent), ConfigError);  // precision=fp32
}

// On a CPU, as on a GPU: the scaler's count of good steps is part of the state.
TEST_F(JobTest, Fp16LearnsUnderAScalerAndResumesToTheSameBytes) {
  // Short: where oneDNN has float16 (AVX512-FP16), a small convolution takes 200 times as long as in float32.
  const std::vector<std::string> words = {"epochs=5", "label_smoothing=0", "precision=fp16"};
  const Ran straight = train(request("straight", words));
  const Ran twin = train(request("twin", {"epochs=5", "label_smoothing=0"}));
  EXPECT_TRUE(trains_like(straight.folder, twin.folder, 6));
  const std::vector<double> means = means_of(training_losses(twin.folder), 6);
  EXPECT_LT(means.back(), 0.85 * means.front()) << "the twin learns too little for a comparison";
  const auto tensors = io::read_safetensors(straight.folder / "checkpoints/last/state.safetensors").tensors;
  const at::Tensor scale = tensors.at("scaler.scale"), good_steps = tensors.at("scaler.growth_tracker");
  EXPECT_GE(scale.item<float>(), 1024);
  EXPECT_EQ(good_steps.item<int>(), straight.outcome.step) << "a step overflowed at a scale of " << scale.item<float>();

  const Ran stopped = train(request("stopped", words), 7);
  std::atomic<bool> never{false};
  (void)Job::resume(stopped.folder, {}, kSilent).train({}, never);
  EXPECT_EQ(weights(stopped.folder), weights(straight.folder));
  EXPECT_EQ(state(stopped.folder), state(straight.folder));
}

TEST_F(JobTest, AMeasuredPlanRepeatsToTheBit) {
  const Ran first = train(request("measured", {"precision=auto", "layout=auto", "threads=auto", "intra_op=auto"}));
  Request repeat = make_request({}, {});
  repeat.data = folder_ / "data";
  repeat.run = (folder_ / "again").native();
  repeat.plan_file = first.folder / "plan.json";
  const Ran second = train(std::move(repeat));
  EXPECT_EQ(weights(second.folder), weights(first.folder));
  EXPECT_EQ(state(second.folder), state(first.folder));
}

// The trials that choose precision, layout and threads use the real model. A run after them equals a run without them.
TEST_F(JobTest, TrialsLeaveNoTrace) {
  const Ran measured = train(request("measured", {"precision=auto", "layout=auto"}));
  const auto plan = nlohmann::json::parse(file_bytes(measured.folder / "plan.json"))["plan"];
  EXPECT_EQ(plan["layout"]["origin"], "measured");
  const auto chosen = [&](const std::string& key) { return key + "=" + plan[key]["value"].get<std::string>(); };
  EXPECT_EQ(weights(train(request("plain", {chosen("precision"), chosen("layout")})).folder), weights(measured.folder));
}

// Whichever layout a trial finds faster on this machine, repeating and resuming keep the layout of the run.
TEST_F(JobTest, ALayoutIsRepeatedAndResumedToTheBit) {
  const std::string other = weights(train(request("other")).folder);
  const Ran straight = train(request("straight", {"layout=contiguous"}));
  EXPECT_NE(weights(straight.folder), other) << "both layouts round alike here, so the comparison cannot fail";
  Request repeat = make_request({}, {});
  repeat.data = folder_ / "data";
  repeat.run = (folder_ / "again").native();
  repeat.plan_file = straight.folder / "plan.json";
  EXPECT_EQ(weights(train(std::move(repeat)).folder), weights(straight.folder));
  const Ran stopped = train(request("stopped", {"layout=contiguous"}), 7);
  std::atomic<bool> never{false};
  (void)Job::resume(stopped.folder, {}, kSilent).train({}, never);
  EXPECT_EQ(weights(stopped.folder), weights(straight.folder));
  EXPECT_EQ(state(stopped.folder), state(straight.folder));
}

TEST_F(JobTest, RecomputationChangesNoByteAlsoAfterAResume) {
  const std::string plain = weights(train(request("plain")).folder);
  EXPECT_EQ(weights(train(request("recomputed", {"recompute=all"})).folder), plain);
  const Ran stopped = train(request("stopped", {"recompute=every:2"}), 7);
  EXPECT_THAT(file_bytes(stopped.folder / "plan.json"), HasSubstr("every:2"));
  std::atomic<bool> stop = false;
  (void)Job::resume(stopped.folder, {}, kSilent).train({}, stop);
  EXPECT_EQ(weights(stopped.folder), plain);
  EXPECT_THAT(complaint([&] { (void)Job::prepare(request("x", {"recompute=layer9"}), kSilent); }),
              HasSubstr("the model's segments are"));
}

TEST_F(JobTest, AnOptimizerInBackwardChangesNoByteAlsoAfterAResume) {
  const Ran plain = train(request("plain", {"skip_limit=0"}));
  EXPECT_EQ(weights(train(request("early", {"optimizer_in_backward=on", "recompute=all"})).folder),
            weights(plain.folder));
  const Ran stopped = train(request("stopped", {"optimizer_in_backward=on"}), 7);
  std::atomic<bool> stop = false;
  (void)Job::resume(stopped.folder, {}, kSilent).train({}, stop);
  EXPECT_EQ(weights(stopped.folder), weights(plain.folder));
  EXPECT_EQ(state(stopped.folder), state(plain.folder));
  EXPECT_THAT(complaint([&] {
                (void)Job::prepare(request("x", {"optimizer_in_backward=on", "clip=1"}), kSilent);
              }),
              HasSubstr("set clip=0, or set optimizer_in_backward=off"));
}

TEST_F(JobTest, ARunThatGoesOnEvaluatesEachEpochOnce) {
  const Ran ran = train(request("run"));
  std::atomic<bool> never{false};
  Job::resume(ran.folder, {"epochs=3"}, kSilent).train({}, never);
  std::ifstream in(ran.folder / "metrics.csv");
  std::vector<std::string> steps;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("eval,") && line.find(",val,accuracy,") != std::string::npos) {
      steps.push_back(line.substr(0, line.find(',', line.find(',', 5) + 1)));
    }
  }
  EXPECT_THAT(steps, ::testing::ElementsAre("eval,1,6", "eval,1,12", "eval,2,18"));
}

// As examples/own_metric.cpp leaves it: a run of a task that only that program knows.
TEST_F(JobTest, ARunOfAnotherProgramsTaskSaysWhoReadsIt) {
  const fs::path run = train(request("run", {"epochs=1"})).folder;
  io::CheckpointStore store(run / "checkpoints");
  io::Checkpoint best = store.load("best");
  nlohmann::json info = *best.info;
  info["task"] = "shelves";
  best.info = info;
  store.save("best", best);
  std::ofstream(run / "config.toml", std::ios::app) << "task = 'shelves'\n";
  EXPECT_THAT(complaint([&] { (void)load_model(run, at::kCPU); }),
              ::testing::AllOf(HasSubstr("\"shelves\""), HasSubstr("use that program to read it")));
  EXPECT_THAT(complaint([&] { (void)Job::resume(run, {}, kSilent); }),
              ::testing::AllOf(HasSubstr("\"shelves\""), HasSubstr("resume it with that program")));
}

// The console and checkpoints count epochs from 1. The last step of an epoch belongs to that epoch, whether it was
// saved before or after the epoch's end.
TEST_F(JobTest, ACheckpointSaysWhichEpochItsStepWasOf) {
  const auto epoch = [](const fs::path& run) {
    const auto info = nlohmann::json::parse(file_bytes(run / "checkpoints/last/info.json"));
    return std::pair(info.at("step").get<int>(), info.at("epoch").get<int>());
  };
  EXPECT_EQ(epoch(train(request("whole")).folder), std::pair(12, 2));
  EXPECT_EQ(epoch(train(request("six", {"steps=6"})).folder), std::pair(6, 1));
  EXPECT_EQ(epoch(train(request("seven", {"steps=7"})).folder), std::pair(7, 2));
  const fs::path stopped = train(request("stopped", {"eval_every=6"}), 6).folder;  // at or after the epoch's end
  EXPECT_EQ(epoch(stopped).second, (epoch(stopped).first + 5) / 6);
}

TEST_F(JobTest, MetricsOfAResumedRunAreThoseOfAnUninterruptedOne) {
  const auto without_times = [](const fs::path& file) {
    std::vector<std::string> rows;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      auto json = nlohmann::json::parse(line);
      const std::string event = json["event"];
      if (event == "fed" || event == "anatomy" || event == "slow_step" || event == "checkpoint" || event == "monitor") {
        continue;  // of each session
      }
      for (const char* key : {"seconds", "data_wait", "memory_bytes"}) {
        json.erase(key);
      }
      rows.push_back(json.dump());
    }
    return rows;
  };
  const Ran straight = train(request("straight", {"save_every=1"}));
  const auto expected = without_times(straight.folder / "metrics.jsonl");
  for (const std::int64_t step : {2, 6, 7}) {  // 6 is the last step of an epoch
    const Ran stopped = train(request("stop" + std::to_string(step), {"save_every=1"}), step);
    std::atomic<bool> never{false};
    Job::resume(stopped.folder, {}, kSilent).train({}, never);
    EXPECT_EQ(without_times(stopped.folder / "metrics.jsonl"), expected) << "stopped at step " << step;
  }
}

TEST_F(JobTest, TheMachineIsWatchedUnlessThatIsOff) {
  const auto records = [](const fs::path& run) {
    std::vector<nlohmann::json> found;
    std::ifstream in(run / "metrics.jsonl");
    for (std::string line; std::getline(in, line);) {
      auto json = nlohmann::json::parse(line);
      if (json["event"] == "monitor") {
        found.push_back(std::move(json));
      }
    }
    return found;
  };
  const auto on = records(train(request("on")).folder);
  ASSERT_FALSE(on.empty());
  EXPECT_EQ(on.back()["version"], 1);
  EXPECT_EQ(on.back()["step"], 12);
  EXPECT_GT(on.back()["figures"]["process.resident_bytes"], 1 << 20);
  EXPECT_GT(on.back()["figures"]["device.allocated_bytes"], 0);
  EXPECT_TRUE(records(train(request("off", {"monitor=off"})).folder).empty());
}

TEST_F(JobTest, EventsComeInOrder) {
  std::vector<std::string> events;
  train(request("run"), -1, &events);
  const std::vector<std::string> epoch_end = {"evaluated val", "saved last"};
  std::erase_if(events, [](const std::string& event) {
    return event == "saved best" || event == "finding" || event == "evaluating" || event == "fed" ||
           event == "monitor" || event == "anatomy" || event == "slow_step";  // by time
  });
  const auto artifacts = std::unique(std::find(events.begin(), events.end(), "artifact"), events.end() - 1);
  events.erase(artifacts, events.end() - 1);  // count all artifacts as one
  std::vector<std::string> expected = {"run_started"};
  for (int step = 1; step <= 12; ++step) {
    expected.push_back("step " + std::to_string(step));
    if (step % 6 == 0) {
      expected.insert(expected.end(), epoch_end.begin(), epoch_end.end());
    }
  }
  expected.insert(expected.end(), {"evaluated test", "artifact", "run_finished"});
  EXPECT_EQ(events, expected);
}

TEST_F(JobTest, FrozenSegmentsStayAndTheOthersLearn) {
  const Ran ran = train(request("run"));
  const Ran tuned = train(request("tuned", {"weights=" + ran.folder.native(), "freeze=1", "epochs=1"}));
  const auto before = io::read_safetensors(ran.folder / "checkpoints/best/weights.safetensors").tensors;
  const auto after = io::read_safetensors(tuned.folder / "checkpoints/last/weights.safetensors").tensors;
  int moved = 0;
  for (const auto& [name, tensor] : before) {
    const bool same = after.at(name).equal(tensor);
    if (name.starts_with("stem.")) {  // its batch norm's statistics, too
      EXPECT_TRUE(same) << name;
    }
    moved += same ? 0 : 1;
  }
  EXPECT_GT(moved, 10);
}

TEST_F(JobTest, AChangedDataSetCannotGoOn) {
  const Ran stopped = train(request("run"), 2);
  write_striped_set(folder_, "data/train/extra-", 2);  // three more classes
  std::atomic<bool> never{false};
  try {
    (void)Job::resume(stopped.folder, {}, kSilent);
    FAIL() << "it resumed";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr("now has 6 classes, but the run was started with 3"));
  }
}

TEST_F(JobTest, OnlySomeValuesMayChangeOnResume) {
  const Ran stopped = train(request("run"), 2);
  EXPECT_THROW((void)Job::resume(stopped.folder, {"lr=0.1"}, kSilent), ConfigError);
  std::atomic<bool> never{false};
  EXPECT_EQ(Job::resume(stopped.folder, {"epochs=3"}, kSilent).train({}, never).step, 18);
}

}  // namespace
}  // namespace stoker::job
