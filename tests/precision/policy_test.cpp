// SPDX-License-Identifier: Apache-2.0
#include "stoker/precision/policy.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <vector>

#include "stoker/precision/process_switches.h"

namespace stoker::precision {
namespace {

class SearchTest : public ::testing::Test {
 protected:
  // For each pass, given its number of samples: whether it searches.
  static std::vector<bool> searched(const std::vector<std::int64_t>& passes) {
    std::int64_t largest = 0;
    std::vector<bool> result;
    for (const std::int64_t samples : passes) {
      const SearchGuard guard(samples, largest);
      result.push_back(searches());
    }
    return result;
  }
  static bool searches() { return at::globalContext().benchmarkCuDNN(); }

 private:
  const ProcessSwitches before_;
};

TEST_F(SearchTest, TailsAreNotSearchedFor) {
  apply({.cudnn_benchmark = true});
  EXPECT_EQ(searched({64, 64, 10, 64}), (std::vector<bool>{true, true, false, true}));
  EXPECT_EQ(searched({3, 4, 3, 4, 1}), (std::vector<bool>{true, true, true, true, false}));  // even parts, then a tail
  EXPECT_TRUE(searches());
}

TEST_F(SearchTest, WhatIsOffStaysOff) {
  apply({.cudnn_benchmark = false});
  EXPECT_EQ(searched({64, 10, 64}), (std::vector<bool>{false, false, false}));
  EXPECT_FALSE(searches());
}

}  // namespace
}  // namespace stoker::precision
