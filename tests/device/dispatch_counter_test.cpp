// SPDX-License-Identifier: Apache-2.0
// The tests' own operator counter sees every call that it must count, and nothing after its lifetime.
#include "support/dispatch_counter.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <thread>

namespace stoker::testing {
namespace {

using Waits = std::map<std::string, std::int64_t>;

TEST(DispatchCounter, SeesItem) {
  const at::Tensor one = at::ones({});
  const DispatchCounter counter;
  EXPECT_EQ(one.item<float>(), 1.0F);
  EXPECT_EQ(counter.waits(), (Waits{{"aten::item", 1}, {"aten::_local_scalar_dense", 1}}));
}

TEST(DispatchCounter, SeesTruthValuesShapesAndComparisons) {
  const at::Tensor ones = at::ones({3});
  const DispatchCounter counter;
  EXPECT_TRUE(ones.sum().is_nonzero());
  (void)at::nonzero(ones);
  EXPECT_TRUE(ones.equal(ones.clone()));
  EXPECT_EQ(counter.calls("aten::is_nonzero"), 1);
  EXPECT_EQ(counter.calls("aten::nonzero"), 1);
  EXPECT_EQ(counter.calls("aten::equal"), 1);
}

TEST(DispatchCounter, PlainArithmeticDoesNotWait) {
  const at::Tensor ones = at::ones({4}).requires_grad_();
  const DispatchCounter counter;
  (ones * ones).sum().backward();
  EXPECT_EQ(counter.waits(), Waits{});
  EXPECT_GE(counter.calls("aten::mul"), 1);
  EXPECT_GT(counter.total(), 3);
}

TEST(DispatchCounter, SeesOtherThreads) {
  const at::Tensor one = at::ones({});
  const DispatchCounter counter;
  std::jthread([&] { EXPECT_EQ(one.item<float>(), 1.0F); }).join();
  EXPECT_EQ(counter.calls("aten::item"), 1);
}

TEST(DispatchCounter, EndsWithItsLife) {
  const at::Tensor one = at::ones({});
  { const DispatchCounter counter; }
  (void)one.item<float>();
  const DispatchCounter fresh;
  EXPECT_EQ(fresh.total(), 0);
}

}  // namespace
}  // namespace stoker::testing
