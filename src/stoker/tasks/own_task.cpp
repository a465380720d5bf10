// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/own_task.h"

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/tasks/rank_part.h"
#include "stoker/tasks/recipe_rows.h"
#include "stoker/tasks/registry.h"

namespace stoker::tasks {
namespace {

constexpr std::string_view kWhere = "tasks.own_task";
constexpr const char* kUsual = "a usual first choice";

// The program's training batches, checked: the loop and a resume trust their positions.
class CheckedBatches final : public core::BatchSource {
 public:
  CheckedBatches(std::unique_ptr<core::BatchSource> source, std::int64_t samples, const BatchRequest& request)
      : source_(std::move(source)),
        samples_(samples),
        batch_(request.batch),
        steps_((samples + (request.drop_tail ? 0 : batch_ - 1)) / batch_),
        next_(request.start) {}

  [[nodiscard]] std::optional<core::Batch> next() override {
    std::optional<core::Batch> batch = source_->next();
    if (!batch) {
      if (next_.step != steps_) {
        fail<DataError>(kWhere, "epoch {} ended after {} batches; train_samples and batch={} make {}", next_.epoch,
                        next_.step, batch_, steps_);
      }
      next_ = {next_.epoch + 1, 0};
      return batch;
    }
    const core::Position at = batch->position();
    if (next_.step >= steps_) {
      fail<DataError>(kWhere, "epoch {} goes on after {} batches; train_samples and batch={} make no more", next_.epoch,
                      steps_, batch_);
    }
    if (at != next_) {
      fail<DataError>(
          kWhere,
          "a batch says that it is step {} of epoch {}, but step {} of epoch {} is next; number the batches "
          "of each epoch from 0, beginning with request.start",
          at.step, at.epoch, next_.step, next_.epoch);
    }
    const std::int64_t expected = std::min(batch_, samples_ - at.step * batch_);
    if (batch->size() != expected) {
      fail<DataError>(kWhere, "step {} of epoch {} has {} samples; train_samples and batch={} make {}", at.step,
                      at.epoch, batch->size(), batch_, expected);
    }
    ++next_.step;
    return batch;
  }
  [[nodiscard]] std::optional<core::SourceFigures> figures() const override { return source_->figures(); }

 private:
  std::unique_ptr<core::BatchSource> source_;
  std::int64_t samples_, batch_, steps_;
  core::Position next_;
};

// The part of a phase that depends on the program's numbers.
template <typename Phase>
class WithOwn : public Phase {
 public:
  explicit WithOwn(std::shared_ptr<const OwnTask> own) : own_(std::move(own)) {}
  [[nodiscard]] std::int64_t size(Split split) const final {
    return split == Split::kTrain ? own_->train_samples : split == Split::kVal ? own_->val_samples : own_->test_samples;
  }
  [[nodiscard]] std::string describe() const final { return own_->name; }
  [[nodiscard]] std::string details() const final { return ""; }
  [[nodiscard]] const std::vector<std::string>& findings() const final {
    static const std::vector<std::string> none;
    return none;
  }

 protected:
  std::shared_ptr<const OwnTask> own_;
};

class ReadyOwn final : public WithOwn<ReadyTask> {
 public:
  using WithOwn::WithOwn;

  [[nodiscard]] std::unique_ptr<Model> make_model(const ModelRequest& request) const override {
    return as_model(own_->model(request.seed));
  }
  [[nodiscard]] BatchChecks checks() const override { return {}; }
  [[nodiscard]] std::int64_t sample_flops(const Model&) const override { return 0; }
  [[nodiscard]] std::unique_ptr<core::BatchSource> training_batches(const BatchRequest& request) const override {
    const BatchRequest whole = whole_batches(request);
    return rank_part(std::make_unique<CheckedBatches>(own_->training(whole), own_->train_samples, whole), request);
  }
  [[nodiscard]] std::unique_ptr<core::BatchSource> evaluation_batches(Split split,
                                                                      const BatchRequest& request) const override {
    const BatchRequest whole = whole_batches(request);
    return rank_part(split == Split::kTrain ? own_->training(whole) : own_->evaluation(split, whole), request);
  }
  [[nodiscard]] std::string sample_name(std::int64_t index) const override { return fmt::format("sample {}", index); }
  [[nodiscard]] nlohmann::json card() const override { return nlohmann::json::object(); }
  void check_same(const nlohmann::json&, const std::string&) const override {}  // job compares the number of samples
};

class OpenOwn final : public WithOwn<OpenData> {
 public:
  using WithOwn::WithOwn;

  [[nodiscard]] std::vector<core::PlanRow> recipe(const RecipeRequest& request) const override {
    RecipeRows rows;
    std::string optimizer = request.optimizer;
    for (const auto& [key, value] : own_->defaults) {
      optimizer = optimizer.empty() && key == "optimizer" ? value : optimizer;
    }
    const bool sgd = optimizer == "sgd";
    rows.add("model", own_->name, "set by the program");
    rows.add("batch", std::clamp<std::int64_t>(own_->train_samples / 50, 1, 64),
             "at least 50 steps per epoch if the data allow it");
    rows.add("epochs", 10, kUsual);
    rows.add("optimizer", optimizer.empty() ? "adamw" : optimizer, "adaptive steps");
    rows.add("lr", sgd ? 0.1 : 1e-3, kUsual);
    rows.add("lr_batch", 64, "the batch that lr is stated for");
    rows.add("weight_decay", sgd ? 1e-4 : 0.01, kUsual);
    rows.add("schedule", "cosine", "down to 0 at the end");
    rows.add("warmup", 0.05, "a share of the run");
    for (const auto& [key, value] : own_->defaults) {
      std::erase_if(rows.rows, [&key = key](const core::PlanRow& row) { return row.key == key; });
      rows.add(key, value, "the program's default");
    }
    return std::move(rows.rows);
  }
  [[nodiscard]] bool couples_samples(const std::string&) const override { return own_->couples_samples; }
  [[nodiscard]] std::unique_ptr<ReadyTask> settle(const std::string&, const core::TaskValues&) && override {
    return std::make_unique<ReadyOwn>(std::move(own_));
  }
  [[nodiscard]] std::unique_ptr<ReadyTask> adopt(const nlohmann::json&) && override {
    return std::make_unique<ReadyOwn>(std::move(own_));
  }
};

class OwnKind final : public TaskKind {
 public:
  explicit OwnKind(OwnTask own)
      : TaskKind({.name = own.name, .help = "defined by a program", .options = {}, .models = {own.name}}),
        own_(std::make_shared<const OwnTask>(std::move(own))) {}

  [[nodiscard]] bool recognises(const std::filesystem::path&) const override { return false; }
  [[nodiscard]] std::unique_ptr<OpenData> open(const std::filesystem::path&, const OpenOptions&) const override {
    return std::make_unique<OpenOwn>(own_);
  }
  [[nodiscard]] std::string describe_card(const nlohmann::json&) const override { return ""; }
  [[nodiscard]] std::unique_ptr<Model> restore(const ModelRequest& request, const nlohmann::json&) const override {
    return as_model(own_->model(request.seed));
  }

 private:
  std::shared_ptr<const OwnTask> own_;
};

void by_sample(OwnTask& own) {
  // Training and validation may be prepared at the same time.
  own.sample = [sample = std::move(own.sample), mutex = std::make_shared<std::mutex>()](Split split, std::int64_t index,
                                                                                        const CounterRng& random) {
    const std::lock_guard lock(*mutex);
    return sample(split, index, random);
  };
  own.training = [sample = own.sample, size = own.train_samples](const BatchRequest& request) {
    return sample_source(sample, Split::kTrain, size, request);
  };
  if (own.val_samples > 0 || own.test_samples > 0) {
    own.evaluation = [sample = own.sample, val = own.val_samples, test = own.test_samples](
                         Split split, const BatchRequest& request) {
      return sample_source(sample, split, split == Split::kVal ? val : test, request);
    };
  }
}

}  // namespace

void add_own_task(OwnTask own) {
  const bool by_batch = own.training || own.evaluation;
  if (!own.model || bool(own.sample) == by_batch || (by_batch && !own.training)) {
    fail<ConfigError>(kWhere, "task {} is incomplete: set model, and either sample or training", printable(own.name));
  }
  if (own.train_samples < 1) {
    fail<ConfigError>(kWhere, "task {} has {} training samples; set train_samples", printable(own.name),
                      own.train_samples);
  }
  if (own.sample) {
    by_sample(own);
  }
  if (own.val_samples < 0 || own.test_samples < 0) {
    fail<ConfigError>(kWhere, "task {} has {} validation and {} test samples; neither may be negative",
                      printable(own.name), own.val_samples, own.test_samples);
  }
  if ((own.val_samples + own.test_samples > 0) != bool(own.evaluation)) {
    fail<ConfigError>(kWhere, "task {} has {} validation and {} test samples, and {} evaluation; set both or neither",
                      printable(own.name), own.val_samples, own.test_samples, own.evaluation ? "sets" : "does not set");
  }
  add_task(std::make_unique<OwnKind>(std::move(own)));
}

}  // namespace stoker::tasks
