// SPDX-License-Identifier: Apache-2.0
// Names of any bytes survive texts that can hold only UTF-8.
#include "stoker/base/byte_name.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(ByteName, TextStaysAsItIs) {
  for (const char* name : {"", "cat", "with blank", "\xc3\xbc \xe2\x98\x83", "he\"x"}) {
    EXPECT_EQ(byte_name_to_text(name), name);
    EXPECT_EQ(byte_name_from_text(name), name);
  }
}

TEST(ByteName, EverythingElseComesBackByteForByte) {
  EXPECT_EQ(byte_name_to_text("a\xff"), "hex:61ff");
  for (const std::string name : {"\xff\xfe", "line\nbreak", "hex:", "hex:61", "\xc3"}) {
    EXPECT_EQ(byte_name_from_text(byte_name_to_text(name)), name);
  }
}

TEST(ByteName, RefusesWhatIsNotHexadecimal) {
  for (const char* text : {"hex:6", "hex:zz", "hex:6g", "hex:-1", "hex:61 "}) {
    EXPECT_EQ(byte_name_from_text(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace stoker
