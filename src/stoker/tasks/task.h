// SPDX-License-Identifier: Apache-2.0
// A kind of task from its data to its model, in the order of a run: TaskKind opens data (OpenData: sizes, findings,
// recipe); the plan settles it (ReadyTask: batches, model, what to show). One folder per kind, one line each in
// registry.cpp; job drives them and knows no more than this. One thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stoker/augment/resident_images.h"
#include "stoker/core/bad_sample.h"
#include "stoker/core/batch_source.h"
#include "stoker/core/load_time.h"
#include "stoker/core/option.h"
#include "stoker/core/plan_row.h"
#include "stoker/tasks/model.h"

namespace stoker::tasks {

enum class Split { kTrain, kVal, kTest };
inline constexpr Split kSplits[] = {Split::kTrain, Split::kVal, Split::kTest};
[[nodiscard]] constexpr std::string_view split_name(Split split) {
  return split == Split::kTrain ? "train" : split == Split::kVal ? "val" : "test";
}

struct OpenOptions {
  double val = 0;          // share of train to validate on where the data has no validation split
  std::uint64_t seed = 0;  // of that choice
  core::TaskValues own;    // what was asked for, or a plan's values
  std::string model;       // likewise; empty: not asked
  bool cuda = false;
  bool named = false;   // the kind was asked for by name: do not ask whether the data is another kind's
  bool adopts = false;  // adopt() follows: the card says what else would be looked for in the data
  bool whole = false;   // cut nothing off: val and test are what the data itself has, the rest is train
  std::function<void(std::int64_t files)> progress;
};

// What was asked for, as far as it decides the defaults; empty: not asked.
struct RecipeRequest {
  std::string model, optimizer;
  core::TaskValues own;
  std::int64_t batch = 0;  // 0: not asked
  bool weights = false;    // fine-tuning
  bool cuda = false;
  std::int64_t memory = 0;         // bytes of free RAM
  std::int64_t device_memory = 0;  // with cuda: bytes of the GPU's memory that are free for data; 0: none
};

struct BatchRequest {
  std::int64_t batch = 1;  // samples
  std::uint64_t seed = 0;  // of the order and of what is drawn
  bool drop_tail = false;
  int threads = 0;
  int cores = 0;  // with threads > 0: at most this many load at once, and the source finds the fewest threads that
                  // suffice, starting from threads; 0: threads stays. With threads 0: this many load between steps
  bool pinned = false;
  int rank = 0, ranks = 1;  // the source gives this rank's contiguous part of each global batch, maybe none of its rows
  bool once = false;        // one epoch: nothing of the next is loaded ahead
  core::Position start;
  core::BadSampleListener bad_samples = {};  // may be empty
};

struct ModelRequest {
  std::string name;
  std::uint64_t seed = 0;
  bool channels_last = true;
};

// What the first batch is checked for; 0 leaves a check out.
struct BatchChecks {
  std::string input, target;
  std::int64_t classes = 0;   // of the target
  std::int64_t channels = 0;  // of the input, last dimension
};

// Something to look at, for the run's artifacts/ (docs/formats.md): NAME.json, and the images that it names.
struct Exhibit {
  std::string name;   // "mistakes"
  std::string title;  // "Most confident mistakes"
  std::string json;
  std::vector<std::pair<std::string, std::vector<std::byte>>> files;
};

// Samples without labels, to predict for.
struct UnlabelledSample {
  std::filesystem::path file;
  std::int64_t row = 0;  // of a table, from 1; 0: the whole file
  std::string error;     // why it could not be read; empty: it could
};
struct UnlabelledBatch {
  core::Batch batch;  // what the model's inputs() takes, on the CPU
  std::vector<UnlabelledSample> samples;
};
class UnlabelledSource {
 public:
  virtual ~UnlabelledSource() = default;
  // What was skipped, in sentences for people.
  [[nodiscard]] virtual const std::vector<std::string>& findings() const = 0;
  // At most that many samples; empty after the last one.
  [[nodiscard]] virtual std::optional<UnlabelledBatch> next(std::int64_t samples) = 0;
};

// A text to be written by a model.
struct GenerateRequest {
  std::string prompt;
  std::int64_t tokens = 500;
  double temperature = 0.8;  // 0: always the likeliest token
  std::int64_t top_k = 200;  // draw from that many likeliest tokens; 0: from all
  std::uint64_t seed = 1;
  std::uint32_t sample = 0;  // number of the text among those of one seed
};

// What is known of data in every phase.
class TaskData {
 public:
  virtual ~TaskData() = default;
  [[nodiscard]] virtual std::int64_t size(Split split) const = 0;  // samples
  // "class folders, 10 classes".
  [[nodiscard]] virtual std::string describe() const = 0;
  // More lines of that for people, for `stoker info`.
  [[nodiscard]] virtual std::string details() const = 0;
  // Remarks on the data in sentences for people.
  [[nodiscard]] virtual const std::vector<std::string>& findings() const = 0;
};

// Data with a model's classes, columns or vocabulary: what trains and evaluates.
class ReadyTask : public TaskData {
 public:
  // On the CPU, in training mode.
  [[nodiscard]] virtual std::unique_ptr<Model> make_model(const ModelRequest& request) const = 0;
  [[nodiscard]] virtual BatchChecks checks() const = 0;
  // Floating-point operations of one sample, forward; 0: not known.
  [[nodiscard]] virtual std::int64_t sample_flops(const Model& model) const = 0;
  // Batches on the CPU, cut to the request's rank (rank_part()): of the training split in promise 1's order, of the
  // others in the order of their samples.
  [[nodiscard]] virtual std::unique_ptr<core::BatchSource> training_batches(const BatchRequest& request) const = 0;
  [[nodiscard]] virtual std::unique_ptr<core::BatchSource> evaluation_batches(Split split,
                                                                              const BatchRequest& request) const = 0;
  // The images behind training_batches(), for a device that can hold them all; null: they are more than images, or the
  // plan says that they stay off the device.
  [[nodiscard]] virtual std::shared_ptr<const augment::ResidentImages> resident_images(
      const BatchRequest& request) const {
    (void)request;
    return nullptr;
  }
  // Of the training split; none: it lies in memory, so loader threads would have nothing to do.
  [[nodiscard]] virtual core::LoadTime load_time_per_sample() const { return {}; }
  // Of a training sample's index, for messages.
  [[nodiscard]] virtual std::string sample_name(std::int64_t index) const = 0;
  // What is worth a look of an evaluated split. verdicts: Model::verdicts of its samples; indices: of each
  // row's sample, as its batch had it. Unreadable samples have no row.
  [[nodiscard]] virtual std::vector<Exhibit> exhibits(Split, const at::Tensor& verdicts,
                                                      std::span<const std::int64_t> indices) const {
    (void)verdicts, (void)indices;
    return {};
  }
  // For others who work with the same data: name and text of files in the run's artifacts/ (docs/formats.md).
  [[nodiscard]] virtual std::vector<std::pair<std::string, std::string>> records() const { return {}; }
  // What is worth a look while it trains: asked after each evaluation, with the model in evaluation mode.
  [[nodiscard]] virtual std::vector<Exhibit> samples(Model& model, std::int64_t step) const {
    (void)model, (void)step;
    return {};
  }
  // What TaskKind::restore() and OpenData::adopt() need to know, as members of a checkpoint's info.json.
  [[nodiscard]] virtual nlohmann::json card() const = 0;
  // CheckpointError where a run with that card cannot continue on this data. run: for messages.
  virtual void check_same(const nlohmann::json& card, const std::string& run) const = 0;
};

// Data before there is a plan. settle() or adopt() consumes it.
class OpenData : public TaskData {
 public:
  // Defaults with reasons where they depend on model or data: model, batch, epochs, optimizer, lr, ..., and those of
  // the task's own options.
  [[nodiscard]] virtual std::vector<core::PlanRow> recipe(const RecipeRequest& request) const = 0;
  // Whether a model of that name couples the samples of a batch (batch norm): one alone cannot train it.
  [[nodiscard]] virtual bool couples_samples(const std::string& model) const = 0;

  // With the plan's model and values.
  [[nodiscard]] virtual std::unique_ptr<ReadyTask> settle(const std::string& model, const core::TaskValues& own) && = 0;
  // With the classes and preprocessing of a trained model, as its card says. DataError for data that the model does not
  // know.
  [[nodiscard]] virtual std::unique_ptr<ReadyTask> adopt(const nlohmann::json& card) && = 0;
};

struct TaskInfo {
  std::string name;                   // "image_classification"
  std::string help;                   // one line for people
  std::vector<core::Option> options;  // those of this kind alone, in the order of the help
  std::vector<std::string> models;    // that it trains
};

// A kind of task. Its cards are members of a checkpoint's info.json. CheckpointError, or nlohmann::json::exception,
// for a card that does not hold together.
class TaskKind {
 public:
  explicit TaskKind(TaskInfo info) : info_(std::move(info)) {}
  virtual ~TaskKind() = default;
  [[nodiscard]] const TaskInfo& info() const { return info_; }
  [[nodiscard]] const std::string& name() const { return info_.name; }

  [[nodiscard]] virtual bool recognises(const std::filesystem::path& data) const = 0;
  // DataError for data of another kind.
  [[nodiscard]] virtual std::unique_ptr<OpenData> open(const std::filesystem::path& data,
                                                       const OpenOptions& options) const = 0;
  // What a card says beyond the model, in lines for people.
  [[nodiscard]] virtual std::string describe_card(const nlohmann::json& card) const = 0;
  // The model that a card describes, with initial weights.
  [[nodiscard]] virtual std::unique_ptr<Model> restore(const ModelRequest& request,
                                                       const nlohmann::json& card) const = 0;
  // What `stoker predict` is given, at least one sample, for the model of a card. DataError for paths that do not exist
  // or hold no such data. Null: the kind predicts nothing from files.
  [[nodiscard]] virtual std::unique_ptr<UnlabelledSource> open_unlabelled(
      const nlohmann::json& card, const std::vector<std::filesystem::path>& files) const {
    (void)card, (void)files;
    return nullptr;
  }
  // Whether its models write text; only then is generate() called.
  [[nodiscard]] virtual bool writes_text() const { return false; }
  // Hands the text to take, piece by piece, until it says false.
  virtual void generate(Model& model, const nlohmann::json& card, const GenerateRequest& request,
                        const std::function<bool(std::string_view)>& take) const {
    (void)model, (void)card, (void)request, (void)take;
  }
  // Files, name and content, that other programs expect beside the weights.
  [[nodiscard]] virtual std::vector<std::pair<std::string, std::string>> companions(const nlohmann::json& card) const {
    (void)card;
    return {};
  }

 private:
  TaskInfo info_;
};

}  // namespace stoker::tasks
