// SPDX-License-Identifier: Apache-2.0
#include "stoker/base/json_depth.h"

#include <gtest/gtest.h>

#include <string>

namespace stoker {
namespace {

TEST(JsonDepth, CountsArraysAndObjectsAlike) {
  EXPECT_FALSE(json_nests_deeper("1", 0));
  EXPECT_TRUE(json_nests_deeper("[]", 0));
  EXPECT_FALSE(json_nests_deeper(R"({"a": [1, {"b": []}]})", 4));
  EXPECT_TRUE(json_nests_deeper(R"({"a": [1, {"b": []}]})", 3));
  EXPECT_FALSE(json_nests_deeper("[[], [], [[]], {}]", 3)) << "siblings do not add a level";
}

TEST(JsonDepth, BracketsInTextAreNone) {
  EXPECT_FALSE(json_nests_deeper(R"({"[[[[": "{{{{\"[[[["})", 1));
  EXPECT_FALSE(json_nests_deeper(R"(["\\", "\"[[["])", 1)) << "escaped quotes do not end a text";
  EXPECT_TRUE(json_nests_deeper(R"(["\\", [1]])", 1));
}

TEST(JsonDepth, AnyBytesEnd) {
  EXPECT_TRUE(json_nests_deeper(std::string(1'000'000, '[')));
  EXPECT_FALSE(json_nests_deeper(std::string(1'000'000, ']')));
  EXPECT_FALSE(json_nests_deeper("\"\\"));
}

}  // namespace
}  // namespace stoker
