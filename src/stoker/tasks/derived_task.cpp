// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/derived_task.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "stoker/tasks/registry.h"

namespace stoker::tasks {
namespace {

// The base's phase of data, without changes.
template <typename Phase>
class Wrapped : public Phase {
 public:
  Wrapped(std::unique_ptr<Phase> base, TaskChanges changes) : base_(std::move(base)), changes_(std::move(changes)) {}
  [[nodiscard]] std::int64_t size(Split split) const final { return base_->size(split); }
  [[nodiscard]] std::string describe() const final { return base_->describe(); }
  [[nodiscard]] std::string details() const final { return base_->details(); }
  [[nodiscard]] const std::vector<std::string>& findings() const final { return base_->findings(); }

 protected:
  std::unique_ptr<Phase> base_;
  TaskChanges changes_;
};

class DerivedTask final : public Wrapped<ReadyTask> {
 public:
  using Wrapped::Wrapped;

  [[nodiscard]] std::unique_ptr<Model> make_model(const ModelRequest& request) const override {
    auto model = base_->make_model(request);
    return changes_.model ? changes_.model(std::move(model)) : std::move(model);
  }
  [[nodiscard]] std::unique_ptr<core::BatchSource> training_batches(const BatchRequest& request) const override {
    auto batches = base_->training_batches(request);
    return changes_.training_batches ? changes_.training_batches(std::move(batches), request) : std::move(batches);
  }
  // A device makes the base's batches, which are different if the batches are changed.
  [[nodiscard]] std::shared_ptr<const augment::ResidentImages> resident_images(
      const BatchRequest& request) const override {
    return changes_.training_batches ? nullptr : base_->resident_images(request);
  }

  [[nodiscard]] BatchChecks checks() const override { return base_->checks(); }
  [[nodiscard]] std::int64_t sample_flops(const Model& model) const override { return base_->sample_flops(model); }
  [[nodiscard]] std::unique_ptr<core::BatchSource> evaluation_batches(Split split,
                                                                      const BatchRequest& request) const override {
    return base_->evaluation_batches(split, request);
  }
  [[nodiscard]] core::LoadTime load_time_per_sample() const override { return base_->load_time_per_sample(); }
  [[nodiscard]] std::string sample_name(std::int64_t index) const override { return base_->sample_name(index); }
  [[nodiscard]] std::vector<Exhibit> exhibits(Split split, const at::Tensor& verdicts,
                                              std::span<const std::int64_t> indices) const override {
    return base_->exhibits(split, verdicts, indices);
  }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> records() const override { return base_->records(); }
  [[nodiscard]] std::vector<Exhibit> samples(Model& model, std::int64_t step) const override {
    return base_->samples(model, step);
  }
  [[nodiscard]] nlohmann::json card() const override { return base_->card(); }
  void check_same(const nlohmann::json& card, const std::string& run) const override { base_->check_same(card, run); }
};

class DerivedData final : public Wrapped<OpenData> {
 public:
  using Wrapped::Wrapped;

  [[nodiscard]] std::vector<core::PlanRow> recipe(const RecipeRequest& request) const override {
    return base_->recipe(request);
  }
  [[nodiscard]] bool couples_samples(const std::string& model) const override { return base_->couples_samples(model); }
  [[nodiscard]] std::unique_ptr<ReadyTask> settle(const std::string& model, const core::TaskValues& own) && override {
    return std::make_unique<DerivedTask>(std::move(*base_).settle(model, own), changes_);
  }
  [[nodiscard]] std::unique_ptr<ReadyTask> adopt(const nlohmann::json& card) && override {
    return std::make_unique<DerivedTask>(std::move(*base_).adopt(card), changes_);
  }
};

// Data is never recognised as this kind: task=name selects it.
class DerivedKind final : public TaskKind {
 public:
  DerivedKind(TaskInfo info, const TaskKind& base, TaskChanges changes)
      : TaskKind(std::move(info)), base_(base), changes_(std::move(changes)) {}

  [[nodiscard]] bool recognises(const std::filesystem::path&) const override { return false; }
  [[nodiscard]] std::unique_ptr<OpenData> open(const std::filesystem::path& data,
                                               const OpenOptions& options) const override {
    return std::make_unique<DerivedData>(base_.open(data, options), changes_);
  }
  [[nodiscard]] std::string describe_card(const nlohmann::json& card) const override {
    return base_.describe_card(card);
  }
  [[nodiscard]] std::unique_ptr<Model> restore(const ModelRequest& request, const nlohmann::json& card) const override {
    auto model = base_.restore(request, card);
    return changes_.model ? changes_.model(std::move(model)) : std::move(model);
  }
  [[nodiscard]] std::unique_ptr<UnlabelledSource> open_unlabelled(
      const nlohmann::json& card, const std::vector<std::filesystem::path>& files) const override {
    return base_.open_unlabelled(card, files);
  }
  [[nodiscard]] bool writes_text() const override { return base_.writes_text(); }
  void generate(Model& model, const nlohmann::json& card, const GenerateRequest& request,
                const std::function<bool(std::string_view)>& take) const override {
    base_.generate(model, card, request, take);
  }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> companions(const nlohmann::json& card) const override {
    return base_.companions(card);
  }

 private:
  const TaskKind& base_;  // of the registry, which never removes a kind
  TaskChanges changes_;
};

}  // namespace

void derive_task(std::string name, const std::string& base, TaskChanges changes) {
  const TaskKind& kind = task_kind(base);
  TaskInfo info = kind.info();
  info.name = std::move(name);
  add_task(std::make_unique<DerivedKind>(std::move(info), kind, std::move(changes)));
}

}  // namespace stoker::tasks
