// SPDX-License-Identifier: Apache-2.0
// Texts that are shorter, as long and longer than the column.
#include "stoker/base/cut_text.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(CutText, KeepsWhatFitsAndWholeCharacters) {
  EXPECT_EQ(cut_text("abc", 3), "abc");
  EXPECT_EQ(cut_text("abcd", 3), "ab…");
  EXPECT_EQ(cut_text("größer", 6), "größer");
  EXPECT_EQ(cut_text("größer", 3), "gr…");
  EXPECT_EQ(cut_text("größer", 4), "grö…");
  EXPECT_EQ(cut_text("", 3), "");
  EXPECT_EQ(cut_text("ab", 1), "…");
}

}  // namespace
}  // namespace stoker
