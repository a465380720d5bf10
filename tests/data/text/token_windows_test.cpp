// SPDX-License-Identifier: Apache-2.0
// In training, every epoch has every window once, and the target of a token is the next token. The order does not
// depend on ranks or on where a run starts. Evaluation covers the whole text.
#include "stoker/data/text/token_windows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include <set>

#include "stoker/base/error.h"
#include "support/no_batch_lost.h"

namespace stoker::data {
namespace {

// Token i has the value 100 + i, so that a value shows its place.
TokenWindowsOptions windows_of(std::int64_t tokens, std::int64_t context, std::int64_t batch) {
  TokenWindowsOptions options;
  options.tokens = (at::arange(tokens) + 100).to(at::kInt);
  options.context = context;
  options.batch = batch;
  options.seed = 3;
  return options;
}

TEST(TokenWindows, AnEpochHasEveryWindowOnceWithTheTokensThatFollow) {
  TokenWindows source(windows_of(1003, 10, 7));
  ASSERT_EQ(window_count(1003, 10, true), 99);
  std::set<std::int64_t> shifts;
  for (std::int64_t epoch = 0; epoch < 30; ++epoch) {
    std::set<std::int64_t> seen;
    std::vector<std::int64_t> order;
    while (const auto batch = source.next()) {
      const at::Tensor ids = (*batch)["ids"], target = (*batch)["target"];
      EXPECT_TRUE(target.equal(ids + 1));
      EXPECT_TRUE(ids.equal(ids.slice(1, 0, 1) + at::arange(10)));
      for (std::int64_t row = 0; row < batch->size(); ++row) {
        const std::int64_t window = batch->indices()[static_cast<std::size_t>(row)];
        EXPECT_EQ(ids[row][0].item<std::int64_t>(), 100 + window * 10 + source.shift(epoch));
        seen.insert(window);
        order.push_back(window);
      }
    }
    EXPECT_EQ(seen.size(), 99U);
    EXPECT_FALSE(std::ranges::is_sorted(order));
    shifts.insert(source.shift(epoch));
  }
  EXPECT_GE(*shifts.begin(), 0);
  EXPECT_LT(*shifts.rbegin(), 10);
  EXPECT_GE(shifts.size(), 7U);
}

TEST(TokenWindows, ALaterStartIsTheLaterPart) {
  TokenWindows whole(windows_of(500, 9, 8));
  while (whole.next()) {
  }
  (void)whole.next();
  TokenWindowsOptions options = windows_of(500, 9, 8);
  options.start = {1, 1};
  TokenWindows later(options);
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE((*whole.next())["ids"].equal((*later.next())["ids"]));
  }
}

TEST(TokenWindows, RanksTogetherAreOne) {
  TokenWindows one(windows_of(500, 9, 8));
  TokenWindowsOptions options = windows_of(500, 9, 8);
  options.ranks = 2;
  TokenWindows first(options);
  options.rank = 1;
  TokenWindows second(options);
  const auto whole = one.next(), a = first.next(), b = second.next();
  EXPECT_TRUE((*whole)["ids"].equal(at::cat({(*a)["ids"], (*b)["ids"]})));
}

TEST(TokenWindows, EvaluationPredictsEveryTokenButTheFirstOnce) {
  for (const std::int64_t tokens : {2, 10, 11, 12, 25}) {
    TokenWindowsOptions options = windows_of(tokens, 10, 2);
    options.train = false;
    TokenWindows source(options);
    std::vector<std::int64_t> targets;
    while (const auto batch = source.next()) {
      const at::Tensor target = (*batch)["target"].flatten(), ids = (*batch)["ids"].flatten();
      for (std::int64_t i = 0; i < target.numel(); ++i) {
        if (const auto each = target[i].item<std::int64_t>(); each != -100) {
          EXPECT_EQ(ids[i].item<std::int64_t>() + 1, each);
          targets.push_back(each);
        }
      }
    }
    ASSERT_EQ(targets.size(), static_cast<std::size_t>(tokens - 1)) << tokens;
    EXPECT_EQ(targets.front(), 101);
    EXPECT_EQ(targets.back(), 100 + tokens - 1);
    EXPECT_TRUE(std::ranges::is_sorted(targets));
  }
}

TEST(TokenWindows, TheShortestTextIsOneWindow) {
  TokenWindows source(windows_of(11, 10, 1));
  EXPECT_EQ(source.shift(0), 0);
  EXPECT_EQ((*source.next())["target"][0][9].item<std::int64_t>(), 110);
  EXPECT_FALSE(source.next());
  EXPECT_THROW(TokenWindows(windows_of(10, 10, 1)), DataError);
  EXPECT_THROW(TokenWindows(windows_of(20, 0, 1)), ConfigError);
}

TEST(TokenWindows, LoseNothingWithoutMemory) {
  const TokenWindowsOptions options = windows_of(103, 10, 4);
  const auto make = [&] { return std::make_unique<TokenWindows>(options); };
  testing::loses_nothing_at_tensors(make, 5);
  testing::loses_nothing_at_new(make, 5, testing::Whose::kMine);
}

}  // namespace
}  // namespace stoker::data
