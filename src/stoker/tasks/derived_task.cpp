// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/derived_task.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "stoker/tasks/registry.h"

namespace stoker::tasks {
namespace {

// The base's task with the changes, and nothing else of its own.
class DerivedTask final : public Task {
 public:
  DerivedTask(std::unique_ptr<Task> base, TaskChanges changes) : base_(std::move(base)), changes_(std::move(changes)) {}

  [[nodiscard]] std::unique_ptr<NetworkTrainable> make_model(const ModelRequest& request) const override {
    auto model = base_->make_model(request);
    return changes_.model ? changes_.model(std::move(model)) : std::move(model);
  }
  [[nodiscard]] std::unique_ptr<core::BatchSource> training_batches(const BatchRequest& request) const override {
    auto batches = base_->training_batches(request);
    return changes_.training_batches ? changes_.training_batches(std::move(batches), request) : std::move(batches);
  }
  // Where the batches are changed, those that a device would make are others.
  [[nodiscard]] std::shared_ptr<const augment::ResidentImages> resident_images(
      const BatchRequest& request) const override {
    return changes_.training_batches ? nullptr : base_->resident_images(request);
  }

  [[nodiscard]] std::int64_t size(Split split) const override { return base_->size(split); }
  [[nodiscard]] std::string describe() const override { return base_->describe(); }
  [[nodiscard]] std::string details() const override { return base_->details(); }
  [[nodiscard]] const std::vector<std::string>& findings() const override { return base_->findings(); }
  [[nodiscard]] std::vector<core::PlanRow> recipe(const Asked& asked) const override { return base_->recipe(asked); }
  [[nodiscard]] bool couples_samples(const std::string& model) const override { return base_->couples_samples(model); }
  void settle(const std::string& model, const core::TaskValues& own) override { base_->settle(model, own); }
  void adopt(const nlohmann::json& card) override { base_->adopt(card); }
  void check_same(const nlohmann::json& card, const std::string& run) const override { base_->check_same(card, run); }
  [[nodiscard]] BatchChecks checks() const override { return base_->checks(); }
  [[nodiscard]] std::int64_t sample_flops(const NetworkTrainable& model) const override {
    return base_->sample_flops(model);
  }
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
  [[nodiscard]] std::vector<Exhibit> samples(NetworkTrainable& model, std::int64_t step) const override {
    return base_->samples(model, step);
  }
  [[nodiscard]] nlohmann::json card() const override { return base_->card(); }

 private:
  std::unique_ptr<Task> base_;
  TaskChanges changes_;
};

}  // namespace

void derive_task(std::string name, const std::string& base, TaskChanges changes) {
  TaskKind kind = task_kind(base);
  kind.name = std::move(name);
  kind.recognises = [](const std::filesystem::path&) { return false; };
  kind.open = [open = kind.open, changes](const std::filesystem::path& path, const OpenOptions& options) {
    return std::make_unique<DerivedTask>(open(path, options), changes);
  };
  if (changes.model) {
    kind.restore = [restore = kind.restore, change = changes.model](const ModelRequest& request,
                                                                    const nlohmann::json& card) {
      return change(restore(request, card));
    };
  }
  add_task(std::move(kind));
}

}  // namespace stoker::tasks
