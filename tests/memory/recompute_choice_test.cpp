// SPDX-License-Identifier: Apache-2.0
// The text of recompute= is read as it is meant, or refused.
#include "stoker/memory/recompute_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker::memory {
namespace {

using Kind = RecomputeChoice::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RecomputeChoice, IsParsed) {
  EXPECT_EQ(parse_recompute("none").kind, Kind::kNone);
  EXPECT_EQ(parse_recompute("all").kind, Kind::kAll);
  EXPECT_EQ(parse_recompute("every:3").kind, Kind::kEvery);
  EXPECT_EQ(parse_recompute("every:3").every, 3);
  EXPECT_EQ(parse_recompute("stem,layer1/mlp.up").kind, Kind::kNames);
  EXPECT_THAT(parse_recompute("stem,layer1/mlp.up").names, ElementsAre("stem", "layer1/mlp.up"));
}

TEST(RecomputeChoice, OtherTextIsRefused) {
  for (const char* text :
       {"", ",", "stem,", "every:", "every:0", "every:-1", "every:2x", "every:99999999999", "a b", "a=b"}) {
    EXPECT_FALSE(is_recompute(text)) << text;
    try {
      (void)parse_recompute(text);
      ADD_FAILURE() << text;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("every:N"));
    }
  }
}

}  // namespace
}  // namespace stoker::memory
