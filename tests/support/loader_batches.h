// SPDX-License-Identifier: Apache-2.0
// The batches of a loader as a list, and a comparison of two of them. For tests of ImageLoader, in one thread.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "stoker/data/load/image_loader.h"

namespace stoker::testing {

using Batches = std::vector<std::optional<core::Batch>>;  // an empty entry ends an epoch

inline Batches run(const data::ImageLoaderOptions& options, int calls) {
  data::ImageLoader loader(options);
  Batches out;
  for (int i = 0; i < calls; ++i) {
    out.push_back(loader.next());
  }
  return out;
}

inline void expect_same(const std::optional<core::Batch>& a, const std::optional<core::Batch>& b) {
  ASSERT_EQ(a.has_value(), b.has_value());
  if (a) {
    EXPECT_EQ(a->indices(), b->indices());
    EXPECT_EQ(a->position(), b->position());
    ASSERT_EQ(a->fields().size(), b->fields().size());
    for (const core::Field& field : a->fields()) {
      EXPECT_TRUE(field.values.equal((*b)[field.name])) << field.name;
    }
  }
}

}  // namespace stoker::testing
