// SPDX-License-Identifier: Apache-2.0
// Batch::slice is the only splitter: it is exact for every layout, and its pieces add up to the whole batch.
#include "stoker/core/batch.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker::core {
namespace {

Batch ragged_batch() {
  Batch batch({1, 2}, {10, 11, 12, 13});
  batch.set("x", at::arange(8).reshape({4, 2}));
  batch.set({"boxes", at::arange(6), Layout::kRagged, at::tensor({0, 2, 2, 5, 6}, at::kLong)});
  batch.set({"grid", at::arange(3), Layout::kPerBatch, {}});
  return batch;
}

TEST(Batch, SlicesEveryLayout) {
  const Batch batch = ragged_batch();
  const Batch part = batch.slice(1, 3);
  EXPECT_EQ(part.indices(), (std::vector<std::int64_t>{11, 12}));
  EXPECT_EQ(part.position(), (Position{1, 2}));
  EXPECT_TRUE(part["x"].equal(at::tensor({2, 3, 4, 5}, at::kLong).reshape({2, 2})));
  EXPECT_TRUE(part["boxes"].equal(at::tensor({2, 3, 4}, at::kLong)));
  EXPECT_TRUE(part.find("boxes")->offsets.equal(at::tensor({0, 0, 3}, at::kLong)));
  EXPECT_TRUE(part["grid"].equal(batch["grid"]));
}

TEST(Batch, PiecesAddUpForEveryCut) {
  const Batch batch = ragged_batch();
  for (std::int64_t cut = 0; cut <= batch.size(); ++cut) {
    const Batch a = batch.slice(0, cut), b = batch.slice(cut, batch.size());
    for (const char* name : {"x", "boxes"}) {
      EXPECT_TRUE(at::cat({a[name], b[name]}).equal(batch[name])) << name << " cut at " << cut;
    }
  }
}

TEST(Batch, SlicesKnowTheirPlaceInTheGlobalBatch) {
  Batch batch = ragged_batch();
  EXPECT_EQ(batch.first_row(), 0);
  EXPECT_EQ(batch.global_size(), 4);
  const Batch slice = batch.slice(1, 4).slice(1, 2);
  EXPECT_EQ(slice.first_row(), 2);
  EXPECT_EQ(slice.global_size(), 4);
  batch.set_part(8, 100);  // a rank's part
  EXPECT_EQ(batch.slice(2, 2).first_row(), 10);
  EXPECT_EQ(batch.slice(2, 2).global_size(), 100);
}

TEST(Batch, RefusesWhatDoesNotFit) {
  Batch batch({}, {0, 1});
  EXPECT_THROW(batch.set("x", at::arange(3)), DataError);
  EXPECT_THROW(batch.set({"r", at::arange(3), Layout::kRagged, at::arange(2)}), DataError);
  EXPECT_THROW((void)batch["y"], DataError);
  EXPECT_THROW((void)batch.slice(1, 3), ConfigError);
}

}  // namespace
}  // namespace stoker::core
