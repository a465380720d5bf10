// SPDX-License-Identifier: Apache-2.0
// Whole runs with the real loader, on each kind of device. Runs on images, text and tables train, evaluate, repeat and
// resume bit for bit; no step waits for the device; evaluations leave no memory reserved; a limit of memory is
// survived; the end of a run needs no more memory than its steps.
#include <ATen/ops/ones.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>

#include "stoker/base/file.h"
#include "stoker/device/host_allocator.h"
#include "stoker/io/checkpoint/checksum.h"
#include "stoker/job/job.h"
#include "support/each_device.h"
#include "support/image_set.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// Calls a function at each event, on the sinks' thread.
class AtEvents final : public core::EventSink {
 public:
  explicit AtEvents(std::function<void(const core::Event&)> look) : look_(std::move(look)) {}
  void on(const core::Event& event) override { look_(event); }
  [[nodiscard]] bool wants_every_step() const override { return true; }

 private:
  std::function<void(const core::Event&)> look_;
};

std::int64_t step_of(const core::Event& event) {
  const auto* finished = std::get_if<core::StepFinished>(&event);
  return finished != nullptr ? finished->step : -1;
}

class Run : public stoker::testing::OnDevice {
 protected:
  [[nodiscard]] Request request(const std::string& data, const std::string& run, Words words) const {
    words.insert(words.end(), {std::string("device=") + GetParam(), "intra_op=1", "deterministic=on"});
    Request result = make_request({}, words);
    result.data = folder_ / data;
    result.run = (folder_ / run).native();
    return result;
  }

  Outcome train(Request request, const std::function<void(const core::Event&)>& look = {},
                const std::atomic<bool>& stop = false) const {
    std::vector<std::unique_ptr<core::EventSink>> sinks;
    if (look) {
      sinks.push_back(std::make_unique<AtEvents>(look));
    }
    return Job::prepare(std::move(request), [](const std::string&) {}).train(std::move(sinks), stop);
  }

  // Checksums, so that a failure does not print pages of bytes.
  [[nodiscard]] std::vector<std::string> saved(const std::string& run) const {
    std::vector<std::string> result;
    for (const char* file : {"weights.safetensors", "state.safetensors"}) {
      const std::string bytes = read_text(folder_ / run / "checkpoints/last" / file);
      result.push_back(io::checksum_of(std::as_bytes(std::span(bytes))));
    }
    return result;
  }

  // Two runs without a stop, and one that is stopped half-way and resumed, end with the same bytes. The evaluation
  // gives finite metrics.
  void expect_the_same_bytes(const std::string& data, const Words& words) const {
    const Outcome straight = train(request(data, "straight", words));
    EXPECT_EQ(straight.end, train::LoopEnd::kDone);
    ASSERT_FALSE(straight.best.empty());
    EXPECT_TRUE(std::isfinite(straight.best.front().value));
    (void)train(request(data, "again", words));
    EXPECT_EQ(saved("again"), saved("straight"));

    std::atomic<bool> stop = false;
    const auto stop_halfway = [&](const core::Event& event) { stop = stop || 2 * step_of(event) >= straight.step - 1; };
    const Outcome stopped = train(request(data, "stopped", words), stop_halfway, stop);
    ASSERT_EQ(stopped.end, train::LoopEnd::kStopped);
    ASSERT_LT(stopped.step, straight.step);
    EXPECT_NE(saved("stopped"), saved("straight")) << "the comparison below cannot fail";
    const std::atomic<bool> never = false;
    Job resumed = Job::resume(folder_ / "stopped", {}, [](const std::string&) {});
    EXPECT_EQ(resumed.train({}, never).step, straight.step);
    EXPECT_EQ(saved("stopped"), saved("straight")) << "stopped at step " << stopped.step;
  }

  void write_images(int each) const {
    stoker::testing::write_striped_set(folder_, "images/train/", each);
    stoker::testing::write_striped_set(folder_, "images/val/", 4, 100);
  }

  stoker::testing::TempFolder folder_;
};
STOKER_ON_EACH_DEVICE(Run);

// Convolutions in bfloat16 with float32 master weights; on a GPU the images are kept there from the second epoch on.
TEST_P(Run, ImagesRepeatAndResumeToTheBit) {
  write_images(15);
  expect_the_same_bytes("images", {"model=cnn", "layout=channels_last", "batch=8", "epochs=4", "optimizer=adamw",
                                   "ema=0.9", "clip=0.5", "precision=bf16", "half_weights=on", "microbatch=3",
                                   "threads=2", "augment=pad_crop_flip", "save_every=1"});
}

TEST_P(Run, ImagesInFp16UnderAScalerDoSoToo) {  // few images: fp16 is slow on a CPU
  write_images(4);
  expect_the_same_bytes("images",
                        {"model=cnn", "layout=channels_last", "batch=4", "epochs=2", "precision=fp16", "threads=1"});
}

TEST_P(Run, TextRepeatsAndResumesToTheBit) {
  std::string text;
  for (int i = 0; i < 150; ++i) {
    text += "line " + std::to_string(i % 10) + " comes after line " + std::to_string((i + 9) % 10) + "\n";
  }
  folder_.write("count.txt", text);
  expect_the_same_bytes("count.txt", {"context=16", "layers=2", "heads=2", "width=16", "batch=8", "steps=24",
                                      "eval_every=8", "save_every=1", "sample_tokens=5", "optimizer=adamw", "ema=0.9",
                                      "precision=bf16", "dropout=0.1", "threads=1"});
}

TEST_P(Run, ATableRepeatsAndResumesToTheBit) {
  std::string text = "age,job,pay\n";
  for (int i = 0; i < 120; ++i) {
    const int age = 18 + i * 7 % 50, job = i * 5 % 3;
    text += (i % 17 == 3 ? "?" : std::to_string(age)) +
            (job == 0   ? ",clerk,"
             : job == 1 ? ",smith,"
                        : ",baker,") +
            (age + 10 * job > 50 ? "high" : "low") + "\n";
  }
  folder_.write("people.csv", text);
  expect_the_same_bytes("people.csv", {"target=pay", "batch=16", "hidden=16", "epochs=4", "optimizer=adamw", "ema=0.9",
                                       "precision=bf16", "threads=1", "save_every=1"});
}

// torch's switch that turns each call that makes the host wait for the device into an error: the enum SyncDebugMode in
// warning_state() of c10/cuda/CUDAFunctions.h. It is a static variable of an inline function, so the process has only
// one. This program uses neither CUDA's headers nor its libraries, so it finds the variable by name.
void set_sync_errors(bool on) {
  enum class SyncDebugMode { kDisabled, kWarn, kError };
  void* const state = ::dlsym(RTLD_DEFAULT, "_ZZN3c104cuda13warning_stateEvE14warning_state_");
  ASSERT_NE(state, nullptr) << "libc10_cuda has no warning_state()";
  *static_cast<SyncDebugMode*>(state) = on ? SyncDebugMode::kError : SyncDebugMode::kDisabled;
}

TEST(GpuSyncErrors, AreSeenWhileTheyAreOn) {
  STOKER_NEEDS_GPU();
  const at::Tensor one = at::ones({}, at::device(c10::Device(c10::DeviceType::CUDA, 0)));
  set_sync_errors(true);
  EXPECT_ANY_THROW((void)one.item<float>());
  set_sync_errors(false);
  EXPECT_EQ(one.item<float>(), 1);
}

// No evaluation or checkpoint falls into the watched steps, even if the sinks are far behind the loop.
TEST_P(Run, NoStepWaitsForTheDevice) {
  write_images(15);
  const std::int64_t steps = on_gpu() ? 600 : 120;
  int watched = 0;
  const auto look = [&](const core::Event& event) {
    const std::int64_t step = step_of(event);
    watched += step > 10 && step <= 60 ? 1 : 0;
    if (on_gpu() && (step == 10 || step == 60)) {
      set_sync_errors(step == 10);
    }
  };
  const Outcome outcome = train(
      request("images", "run",
              {"model=cnn", "layout=channels_last", "batch=8", "steps=" + std::to_string(steps), "optimizer=adamw",
               "ema=0.9", "clip=0.5", "precision=bf16", "threads=1", "eval_every=100000", "save_every=100000"}),
      look);
  EXPECT_EQ(outcome.step, steps);
  EXPECT_EQ(watched, 50);
}

TEST_P(Run, EvaluationsLeaveNoMemoryReserved) {
  write_images(15);
  std::vector<std::int64_t> reserved;  // after each evaluation
  const auto look = [&](const core::Event& event) {
    if (std::holds_alternative<core::Evaluated>(event)) {
      reserved.push_back(device::backend_for(device()).memory(device()).reserved);
    }
  };
  (void)train(request("images", "run",
                      {"model=cnn", "layout=channels_last", "batch=8", "steps=80", "eval_every=2", "precision=bf16",
                       "threads=1", "save_every=100000"}),
              look);
  ASSERT_GE(reserved.size(), 40U);
  // A value may count small tensors of the step that runs meanwhile. What each evaluation left would add up.
  const std::span<const std::int64_t> all(reserved);
  EXPECT_LE(std::ranges::min(all.last(10)), std::ranges::max(all.subspan(5, 10)))
      << "after the first evaluation: " << reserved.front();
}

// The second run may hold half of what the passes of the first one needed.
TEST_P(Run, ALimitOfMemoryIsSurvivedAndExplained) {
  device::install_host_allocator();
  write_images(on_gpu() ? 200 : 40);
  const Words words = {"model=cnn",
                       "layout=channels_last",
                       "norm=group",
                       "precision=fp32",
                       "epochs=3",
                       "threads=1",
                       "cudnn_benchmark=off",  // its search needs most of the memory, and takes what it gets
                       on_gpu() ? "batch=256" : "batch=64",
                       on_gpu() ? "image_size=64" : "image_size=16"};
  const auto record = [&](const std::string& run) {
    return nlohmann::json::parse(read_text(folder_ / run / "artifacts/memory.json"));
  };
  (void)train(request("images", "free", words));
  const nlohmann::json free = record("free");
  const std::int64_t peak = free.at("peak"), between = free.at("after");
  std::int64_t sum = 0;
  for (const auto& category : free.at("categories")) {
    sum += category.at("bytes").get<std::int64_t>();
  }
  EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(peak), 0.02 * static_cast<double>(peak));

  Words capped = words;
  capped.push_back("memory_limit=" + std::to_string(between + (peak - between) / 2));
  int survived = 0;
  const auto look = [&](const core::Event& event) {
    survived += std::holds_alternative<core::FaultSurvived>(event) ? 1 : 0;
  };
  EXPECT_EQ(train(request("images", "capped", capped), look).end, train::LoopEnd::kDone);
  EXPECT_GE(survived, 1) << "peak " << peak << ", between steps " << between;
  const std::string schedule = record("capped").at("microbatch_schedule");
  EXPECT_NE(schedule, "");
  capped = words;
  capped.push_back("microbatch_schedule=" + schedule);
  (void)train(request("images", "repeated", capped));
  if (!on_gpu()) {  // cuDNN may choose other kernels where memory is short
    EXPECT_EQ(saved("capped"), saved("repeated"));
  }
}

// The optimizer's state is still there when the best checkpoint is evaluated, so a second model would not fit.
TEST_P(Run, TheBestCheckpointIsTestedInTheMemoryOfTraining) {
  device::install_host_allocator();
  write_images(10);
  stoker::testing::write_striped_set(folder_, "images/test/", 4, 200);
  const Words words = {"model=mlp", "image_size=64", "precision=fp32", "optimizer=adamw",
                       "batch=8",   "epochs=2",      "threads=1"};
  const Outcome free = train(request("images", "free", words));
  const nlohmann::json record = nlohmann::json::parse(read_text(folder_ / "free/artifacts/memory.json"));
  Words capped = words;
  capped.push_back("memory_limit=" + std::to_string(record.at("peak").get<std::int64_t>() * 11 / 10));
  std::string survived;
  const auto look = [&](const core::Event& event) {
    if (const auto* fault = std::get_if<core::FaultSurvived>(&event)) {
      survived += fault->text + "; ";
    }
  };
  const Outcome tested = train(request("images", "capped", capped), look);
  EXPECT_EQ(tested.end, train::LoopEnd::kDone);
  EXPECT_EQ(survived, "");
  ASSERT_FALSE(free.test.empty());
  EXPECT_EQ(tested.test.front().value, free.test.front().value);
}

}  // namespace
}  // namespace stoker::job
