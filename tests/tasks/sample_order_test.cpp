// SPDX-License-Identifier: Apache-2.0
// The order of samples in every kind of task. shuffle=: batches follow the order of the indices, or a new order in each
// epoch; in both cases every sample occurs once per epoch. The parts of several ranks are the batches of one.
#include <ATen/ops/cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "stoker/base/error.h"
#include "stoker/base/fmt.h"
#include "stoker/tasks/registry.h"
#include "stoker/tasks/sampling.h"
#include "support/default_values.h"
#include "support/image_set.h"

namespace stoker::tasks {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using Indices = std::vector<std::int64_t>;
using stoker::testing::TempFolder;

constexpr int kEpochs = 2;

struct Data {
  const char* kind;
  const char* model;
  const char* path;
  core::TaskValues own;
};

const std::vector<Data> kData{{"image_classification", "mlp", "images", {}},
                              {"tabular", "tabular_mlp", "table.csv", {{"target", "kind"}}},
                              {"language_model", "gpt", "text.txt", {{"context", "8"}}}};

void write_data(const TempFolder& folder) {
  stoker::testing::write_striped_set(folder, "images/", 8);
  std::string table = "size,kind\n", text;
  for (int row = 0; row < 60; ++row) {
    table += fmt::format("{},{}\n", row * 17 % 60, row % 2 == 0 ? "even" : "odd");
    text += fmt::format("line {} of a text\n", row);
  }
  folder.write("table.csv", table);
  folder.write("text.txt", text);
}

std::unique_ptr<ReadyTask> open_settled(const Data& data, const TempFolder& folder, const std::string& shuffle,
                                        const core::TaskValues& more = {}) {
  const core::TaskValues& asked = data.own;
  OpenOptions options;
  options.val = 0.1;
  options.own = asked;
  options.model = data.model;
  auto task = task_kind(data.kind).open(folder / data.path, options);
  RecipeRequest recipe;
  recipe.own = asked;
  core::TaskValues own = stoker::testing::default_values(task_kind(data.kind).info().options, task->recipe(recipe));
  own["shuffle"] = shuffle.empty() ? own.at("shuffle") : shuffle;
  for (const auto& [key, value] : asked) {
    own[key] = value;
  }
  for (const auto& [key, value] : more) {
    own[key] = value;
  }
  return std::move(*task).settle(data.model, own);
}

// The indices of each epoch's samples, in order.
std::vector<Indices> epochs_of(const ReadyTask& task) {
  BatchRequest request;
  request.batch = 5;
  request.seed = 3;
  const auto source = task.training_batches(request);
  std::vector<Indices> epochs(kEpochs);
  for (Indices& epoch : epochs) {
    while (const std::optional<core::Batch> batch = source->next()) {
      epoch.insert(epoch.end(), batch->indices().begin(), batch->indices().end());
    }
  }
  return epochs;
}

TEST(Shuffle, OffIsTheOrderOfTheIndicesAndOnAnotherOneEachEpoch) {
  const TempFolder folder;
  write_data(folder);
  for (const Data& data : kData) {
    SCOPED_TRACE(data.kind);
    const auto on = epochs_of(*open_settled(data, folder, "")), off = epochs_of(*open_settled(data, folder, "off"));
    ASSERT_GT(off[0].size(), 15U);
    EXPECT_TRUE(std::ranges::is_sorted(off[0]));
    EXPECT_EQ(off[1], off[0]);
    EXPECT_NE(on[1], on[0]);
    for (Indices epoch : on) {
      EXPECT_NE(epoch, off[0]);
      std::ranges::sort(epoch);
      EXPECT_EQ(epoch, off[0]) << "every sample once";
    }
  }
}

// Both sources' batches of an epoch are equal if those of the ranks are joined.
void expect_parts(const std::function<std::unique_ptr<core::BatchSource>(const BatchRequest&)>& make) {
  BatchRequest request;
  request.batch = 12;
  request.seed = 3;
  request.once = true;
  for (const int ranks : {2, 4}) {
    const auto whole = make(request);
    std::vector<std::unique_ptr<core::BatchSource>> parts;
    for (int rank = 0; rank < ranks; ++rank) {
      BatchRequest of_rank = request;
      of_rank.rank = rank;
      of_rank.ranks = ranks;
      parts.push_back(make(of_rank));
    }
    int batches = 0;
    for (; const std::optional<core::Batch> expected = whole->next(); ++batches) {
      std::map<std::string, std::vector<at::Tensor>> fields;
      std::int64_t rows = 0;
      for (const auto& source : parts) {
        const std::optional<core::Batch> part = source->next();
        ASSERT_TRUE(part.has_value());
        EXPECT_EQ(part->first_row(), rows);
        EXPECT_EQ(part->global_size(), expected->size());
        EXPECT_LE(part->size(), (expected->size() + ranks - 1) / ranks);
        rows += part->size();
        for (const core::Field& field : part->fields()) {
          fields[field.name].push_back(field.values);
        }
      }
      for (const core::Field& field : expected->fields()) {
        EXPECT_TRUE(at::cat(fields[field.name]).equal(field.values)) << field.name << ", " << ranks << " ranks";
      }
    }
    EXPECT_GE(batches, 1);
    for (const auto& source : parts) {
      EXPECT_FALSE(source->next().has_value());
    }
  }
}

TEST(TaskRanks, TheirPartsAreTheBatchesOfOne) {
  const TempFolder folder;
  write_data(folder);
  for (const Data& data : kData) {
    SCOPED_TRACE(data.kind);
    const auto task = open_settled(data, folder, "");
    expect_parts([&](const BatchRequest& request) { return task->training_batches(request); });
    expect_parts([&](const BatchRequest& request) {
      BatchRequest small = request;
      small.batch = 3;  // the validation split is small
      return task->evaluation_batches(Split::kTrain, small);
    });
  }
}

// Blocks of 6 rows fit the part of one rank of two, and span ranks of four. Draws of a balanced order repeat samples.
TEST(TaskRanks, MixedAndBalancedBatchesAreTheSame) {
  const TempFolder folder;
  write_data(folder);
  for (const core::TaskValues& own : {core::TaskValues{{"mixup", "0.5"}, {"cutmix", "0.5"}, {"mix_block", "6"}},
                                      core::TaskValues{{"sampling", "balanced"}}}) {
    const auto task = open_settled(kData[0], folder, "", own);
    expect_parts([&](const BatchRequest& request) { return task->training_batches(request); });
  }
}

TEST(Shuffle, ClassFoldersInTheirOrderAreWarnedOf) {
  const TempFolder folder;
  write_data(folder);
  EXPECT_THAT(open_settled(kData[0], folder, "off")->findings(), Contains(HasSubstr("class by class")));
  EXPECT_THAT(open_settled(kData[0], folder, "on")->findings(), Not(Contains(HasSubstr("class by class"))));
}

}  // namespace
}  // namespace stoker::tasks
