// SPDX-License-Identifier: Apache-2.0
// What is learnt from a kind of data: how the data is found and split, which settings and defaults it has, its batches,
// its model. One file a kind, one line each in registry.cpp; job drives them and knows no more than this. Before a plan
// there are sizes, findings and the recipe; after settle(), or adopt(), the rest. One thread at a time.
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
#include "stoker/core/plan_row.h"
#include "stoker/core/task_setting.h"
#include "stoker/tasks/network_trainable.h"

namespace stoker::tasks {

enum class Split { kTrain, kVal, kTest };
inline constexpr Split kSplits[] = {Split::kTrain, Split::kVal, Split::kTest};
[[nodiscard]] constexpr std::string_view split_name(Split split) {
  return split == Split::kTrain ? "train" : split == Split::kVal ? "val" : "test";
}

struct OpenOptions {
  double val = 0;          // share of train that validates where the data has no validation split
  std::uint64_t seed = 0;  // of that choice
  core::TaskValues own;    // what was asked for, or a plan's values
  std::string model;       // likewise; empty: not asked
  bool cuda = false;
  bool named = false;   // the kind was asked for by name: the data is not to be asked whether it is another one's
  bool adopts = false;  // adopt() follows: what a card tells is not to be looked for
  bool whole = false;   // nothing is cut off: val and test are what the data itself has, the rest is train
  std::function<void(std::int64_t files)> progress;
};

// What was asked for that decides the defaults; empty: not asked.
struct Asked {
  std::string model, optimizer;
  core::TaskValues own;
  std::int64_t batch = 0;  // 0: not asked
  bool weights = false;    // fine-tuning
  bool cuda = false;
  std::int64_t memory = 0;         // bytes of RAM that could be had
  std::int64_t device_memory = 0;  // with cuda: bytes of the GPU's that could be had for data; 0: none
};

struct BatchRequest {
  std::int64_t batch = 1;  // samples
  std::uint64_t seed = 0;  // of the order and of what is drawn
  bool drop_tail = false;
  int threads = 0;
  int cores = 0;  // with threads > 0: as many may load at once, and the source finds the fewest threads that suffice,
                  // beginning with threads; 0: threads stays. With threads 0: as many load together between steps
  bool pinned = false;
  bool once = false;  // one epoch: nothing of the next is made before it is asked for
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
  // What was passed over, in sentences for people.
  [[nodiscard]] virtual const std::vector<std::string>& findings() const = 0;
  // So many samples at most; empty after the last one.
  [[nodiscard]] virtual std::optional<UnlabelledBatch> next(std::int64_t samples) = 0;
};

// A text to be written by a model.
struct GenerateRequest {
  std::string prompt;
  std::int64_t tokens = 500;
  double temperature = 0.8;  // 0: always the likeliest token
  std::int64_t top_k = 200;  // of that many likeliest; 0: of all
  std::uint64_t seed = 1;
  std::uint32_t sample = 0;  // of one seed's texts
};

class Task {
 public:
  virtual ~Task() = default;

  [[nodiscard]] virtual std::int64_t size(Split split) const = 0;  // samples
  // "class folders, 10 classes".
  [[nodiscard]] virtual std::string describe() const = 0;
  // More of that in lines for people, for `stoker info`.
  [[nodiscard]] virtual std::string details() const = 0;
  // Remarks on the data in sentences for people.
  [[nodiscard]] virtual const std::vector<std::string>& findings() const = 0;
  // Defaults with reasons: model, batch, epochs, optimizer, lr, ..., and every setting of the task's own.
  [[nodiscard]] virtual std::vector<core::PlanRow> recipe(const Asked& asked) const = 0;
  // Whether a model of that name couples the samples of a batch (batch norm): one alone cannot train it.
  [[nodiscard]] virtual bool couples_samples(const std::string& model) const = 0;

  // The plan's model and values hold from here on.
  virtual void settle(const std::string& model, const core::TaskValues& own) = 0;
  // Classes and preprocessing are those of a trained model from here on, as its card tells. DataError for data that it
  // does not know.
  virtual void adopt(const nlohmann::json& card) = 0;
  // CheckpointError where a run with that card cannot go on with this data. run: for messages.
  virtual void check_same(const nlohmann::json& card, const std::string& run) const = 0;

  // On the CPU, in training mode.
  [[nodiscard]] virtual std::unique_ptr<NetworkTrainable> make_model(const ModelRequest& request) const = 0;
  [[nodiscard]] virtual BatchChecks checks() const = 0;
  // Floating-point operations of one sample, forward; 0: not known.
  [[nodiscard]] virtual std::int64_t sample_flops(const NetworkTrainable& model) const = 0;
  // Batches on the CPU, the training split's in promise 1's order, the others' in the order of their samples.
  [[nodiscard]] virtual std::unique_ptr<core::BatchSource> training_batches(const BatchRequest& request) const = 0;
  [[nodiscard]] virtual std::unique_ptr<core::BatchSource> evaluation_batches(Split split,
                                                                              const BatchRequest& request) const = 0;
  // What training_batches() are made of, for a device that can hold it all; null: they are more than that, or the plan
  // says that they do not lie there.
  [[nodiscard]] virtual std::shared_ptr<const augment::ResidentImages> resident_images(
      const BatchRequest& request) const {
    (void)request;
    return nullptr;
  }
  // Of the training split; none: it lies in memory, so that loader threads would have nothing to do.
  [[nodiscard]] virtual core::LoadTime load_time_per_sample() const { return {}; }
  // Of a training sample's index, for messages.
  [[nodiscard]] virtual std::string sample_name(std::int64_t index) const = 0;
  // What is worth a look at of a judged split; verdicts: NetworkTrainable::verdicts of its samples;
  // indices: of each row's sample, as its batch had it. Samples that could not be had have no row.
  [[nodiscard]] virtual std::vector<Exhibit> exhibits(Split, const at::Tensor& verdicts,
                                                      std::span<const std::int64_t> indices) const {
    (void)verdicts, (void)indices;
    return {};
  }
  // For others who work with the same data, as name and text of files in the run's artifacts/ (docs/formats.md).
  [[nodiscard]] virtual std::vector<std::pair<std::string, std::string>> records() const { return {}; }
  // What is worth a look at while it trains: asked after each evaluation, with the model in evaluation mode.
  [[nodiscard]] virtual std::vector<Exhibit> samples(NetworkTrainable& model, std::int64_t step) const {
    (void)model, (void)step;
    return {};
  }
  // What restore() and adopt() need to know, as members of a checkpoint's info.json.
  [[nodiscard]] virtual nlohmann::json card() const = 0;
};

// A setting whose text names a file, unless it is one of words.
struct FileSetting {
  std::string key;
  std::vector<std::string> words = {};
};

struct TaskKind {
  std::string name;  // "image_classification"
  std::string text;  // one line for people
  std::vector<core::TaskSetting> settings;
  std::vector<FileSetting> files = {};  // those of settings that may name one
  std::vector<std::string> models;
  std::function<bool(const std::filesystem::path&)> recognises;
  // DataError for data that is none of the kind.
  std::function<std::unique_ptr<Task>(const std::filesystem::path&, const OpenOptions&)> open;
  // What a card says beyond the model, in lines for people; throws as restore().
  std::function<std::string(const nlohmann::json& card)> describe_card;
  // The model that a card describes, with initial weights. CheckpointError, or nlohmann::json::exception, if it does
  // not hold together.
  std::function<std::unique_ptr<NetworkTrainable>(const ModelRequest&, const nlohmann::json& card)> restore;
  // What `stoker predict` is given, at least one sample, for the model of a card. DataError for paths that do not exist
  // or hold no such data; else as restore(). Empty: the kind predicts nothing from files.
  std::function<std::unique_ptr<UnlabelledSource>(const nlohmann::json& card,
                                                  const std::vector<std::filesystem::path>&)>
      open_unlabelled = {};
  // Hands a text to take piece by piece until it says false. Not set for kinds whose models write nothing.
  std::function<void(NetworkTrainable&, const nlohmann::json& card, const GenerateRequest&,
                     const std::function<bool(std::string_view)>& take)>
      generate = {};
  // Files, name and content, that other programs expect beside the weights. Not set: none.
  std::function<std::vector<std::pair<std::string, std::string>>(const nlohmann::json& card)> companions = {};
};

}  // namespace stoker::tasks
