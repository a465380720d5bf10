// SPDX-License-Identifier: Apache-2.0
// A program's own task kind is known by its name and equals its base in everything that was not changed.
#include "stoker/tasks/derived_task.h"

#include <ATen/core/Tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/tasks/image/classifier.h"
#include "stoker/tasks/registry.h"
#include "support/default_values.h"
#include "support/image_set.h"

namespace stoker::tasks {
namespace {

using stoker::testing::TempFolder;
using ::testing::HasSubstr;

class Marked final : public ImageClassifier {
 public:
  explicit Marked(ImageClassifier&& plain) : ImageClassifier(std::move(plain)) {}
  [[nodiscard]] std::vector<std::string> loss_names() const override { return {"mine"}; }
};

std::unique_ptr<Model> marked(std::unique_ptr<Model> model) {
  return std::make_unique<Marked>(std::move(dynamic_cast<ImageClassifier&>(*model)));
}

// Every second batch of another source.
class Halved final : public core::BatchSource {
 public:
  explicit Halved(std::unique_ptr<core::BatchSource> inner) : inner_(std::move(inner)) {}
  std::optional<core::Batch> next() override {
    auto batch = inner_->next();
    return batch ? inner_->next() : std::nullopt;
  }

 private:
  std::unique_ptr<core::BatchSource> inner_;
};

std::int64_t count(core::BatchSource& source) {
  std::int64_t batches = 0;
  while (source.next()) {
    ++batches;
  }
  return batches;
}

std::unique_ptr<ReadyTask> open_settled(const std::string& kind, const TempFolder& folder) {
  auto data = task_kind(kind).open(folder / "data", {});
  const core::TaskValues own = stoker::testing::default_values(task_kind(kind).info().options, data->recipe({}));
  return std::move(*data).settle("mlp", own);
}

BatchRequest batches_of(std::int64_t samples) {
  BatchRequest request;
  request.batch = samples;
  request.seed = 7;
  return request;
}

std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(DerivedTask, ChangesModelAndTrainingBatchesAlone) {
  const TempFolder folder;
  stoker::testing::write_striped_set(folder, "data/train/", 8);
  stoker::testing::write_striped_set(folder, "data/test/", 8, 100);
  TaskChanges changes;
  changes.model = marked;
  std::uint64_t seed = 0;
  changes.training_batches = [&](std::unique_ptr<core::BatchSource> inner, const BatchRequest& request) {
    seed = request.seed;
    return std::make_unique<Halved>(std::move(inner));
  };
  derive_task("halved", "image_classification", changes);
  const auto task = open_settled("halved", folder), base = open_settled("image_classification", folder);

  const BatchRequest request = batches_of(4);
  EXPECT_EQ(count(*base->training_batches(request)), 6);  // 24 samples
  EXPECT_EQ(count(*task->training_batches(request)), 3);
  EXPECT_EQ(seed, 7U);
  EXPECT_EQ(count(*task->evaluation_batches(Split::kTest, request)), 6);
  EXPECT_EQ(task->make_model({.name = "mlp"})->loss_names().front(), "mine");
  EXPECT_EQ(task->describe(), base->describe());
  EXPECT_EQ(task->card(), base->card());
  // A checkpoint's model is the changed one, too.
  EXPECT_EQ(task_kind("halved").restore({.name = "mlp"}, task->card())->loss_names().front(), "mine");
  EXPECT_EQ(task_kind("image_classification").restore({.name = "mlp"}, task->card())->loss_names().front(),
            "cross_entropy");
  EXPECT_EQ(recognise_task(folder / "data").name(), "image_classification")
      << "a derived kind must be requested by name";
}

TEST(DerivedTask, LeavesOutWhatIsNotChanged) {
  const TempFolder folder;
  stoker::testing::write_striped_set(folder, "data/train/", 8);
  derive_task("plain", "image_classification", {});
  const auto task = open_settled("plain", folder);
  EXPECT_EQ(task->make_model({.name = "mlp"})->loss_names().front(), "cross_entropy");
  EXPECT_EQ(count(*task->training_batches(batches_of(4))), 6);
}

TEST(DerivedTask, RefusesNamesThatCannotBe) {
  EXPECT_THAT(error_of([] { derive_task("x", "image_clasification", {}); }), HasSubstr("did you mean"));
  EXPECT_THAT(error_of([] { derive_task("tabular", "image_classification", {}); }), HasSubstr("it is already in use"));
  EXPECT_THAT(error_of([] { derive_task("", "image_classification", {}); }), HasSubstr("the name is empty"));
}

}  // namespace
}  // namespace stoker::tasks
