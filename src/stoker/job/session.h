// SPDX-License-Identifier: Apache-2.0
// The live objects of one training session: optimizer, scaler, EMA, step, progress; and how they are saved to a
// checkpoint and loaded from one. The part of Job that knows Stateful objects. One thread at a time.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stoker/core/communicator.h"
#include "stoker/core/events.h"
#include "stoker/device/nvtx.h"
#include "stoker/io/checkpoint/store.h"
#include "stoker/job/evaluation_memory.h"
#include "stoker/job/memory_advice.h"
#include "stoker/job/setup.h"
#include "stoker/memory/step_recording.h"
#include "stoker/train/evaluation_watch.h"
#include "stoker/train/progress.h"
#include "stoker/train/step.h"

namespace stoker::job {

class Session {
 public:
  // events: are told when memory ran out; null: nobody is.
  explicit Session(Setup& setup, core::EventEmitter* events = nullptr);

  [[nodiscard]] train::Step& step() { return *step_; }
  [[nodiscard]] train::Progress& progress() { return progress_; }
  [[nodiscard]] train::Recovery& recovery() { return recovery_; }
  [[nodiscard]] HeldBytes held_bytes() const;
  // Tells a recording of a step whose storages these are. After compute and before commit.
  void own_storages(memory::StepRecording& recording) const;

  // Whether ranks hold parts of what a checkpoint needs: of the optimizer's state, or with pipelines also of weights.
  [[nodiscard]] bool scattered() const { return sharded() || stages_ != nullptr; }
  // Brings them to rank 0, for checkpoint("last") until drop_collected(). A collective call.
  void collect();
  void drop_collected() { collected_ = {}; }
  // "last" has everything that resuming needs; "best" has only weights.
  [[nodiscard]] io::Checkpoint checkpoint(const std::string& kind);
  void load(const io::Checkpoint& checkpoint);

  // Metrics on an epoch of a source with the weights for users (EMA if it is on); empty if watch gave up. Afterwards
  // each rank has all weights. A collective call.
  [[nodiscard]] std::vector<core::MetricValue> evaluate(core::BatchSource& source, train::EvaluationWatch watch);
  // The task's exhibits for these weights.
  [[nodiscard]] std::vector<tasks::Exhibit> samples();
  // Of the newest evaluation since the start or the resume; empty before the first one.
  [[nodiscard]] const std::vector<core::MetricValue>& newest_metrics() const { return newest_; }
  // Metrics of checkpoint "best", if one was saved since the start or the resume.
  // The newest metrics are those of the best checkpoint; checkpoint("best") does so, too.
  void mark_best() { best_ = newest_; }
  [[nodiscard]] const std::vector<core::MetricValue>& best_metrics() const { return best_; }

 private:
  [[nodiscard]] bool sharded() const;
  void share_weights();

  Setup& setup_;
  std::optional<device::NvtxRanges> nvtx_;
  std::unique_ptr<parallel::Stages> stages_;  // null: each rank computes the whole model
  std::int64_t shared_step_ = -1;             // after which all ranks of a pipeline had all weights
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<precision::GradScaler> scaler_;
  std::unique_ptr<optim::Ema> ema_;
  std::unique_ptr<train::Step> step_;
  train::Progress progress_;
  train::Recovery recovery_, evaluation_recovery_;
  EvaluationMemory evaluation_memory_;
  std::vector<core::MetricValue> newest_, best_;
  core::State collected_;  // of the optimizer, from all ranks
};

// The optimizer's part of a plan.
[[nodiscard]] optim::OptimizerOptions optimizer_options(const train::Plan& plan);
// "resnet18 on cifar10, cpu, bf16".
[[nodiscard]] std::string run_title(const Setup& setup);
// "cnn-cifar10": model and data folder, in characters that are valid in a file name.
[[nodiscard]] std::string default_run_name(const std::filesystem::path& data, const std::string& model);
// Data, for people: "data: class folders, 10 classes; train 50000, val 0, test 10000".
[[nodiscard]] std::string describe_data(const tasks::TaskData& task);
// That line, then model and arithmetic.
[[nodiscard]] std::vector<std::string> describe_setup(const Setup& setup);

}  // namespace stoker::job
